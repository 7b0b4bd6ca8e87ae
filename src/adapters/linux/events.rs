//! The kernel's word about which mounts changed: a fanotify group on this mount namespace (Linux 6.15).
//!
//! It only names mounts by their unique ids. What became of each is asked afterwards, so that an event says nothing
//! but "look again" and none can mislead.

use std::os::fd::AsFd;

use nix::sys::fanotify::{EventFFlags, Fanotify, InitFlags, MarkFlags, MaskFlags};
use rustix::io::Errno;

use super::failure::{Failure, Outcome, Step};

/// From the kernel's `linux/fanotify.h`; nix does not name them yet.
const FAN_REPORT_MNT: u32 = 0x4000;
const FAN_MARK_MNTNS: u32 = 0x110;
const FAN_MNT_ATTACH: u64 = 0x0100_0000;
const FAN_MNT_DETACH: u64 = 0x0200_0000;
const FAN_Q_OVERFLOW: u64 = 0x4000;
const FAN_EVENT_INFO_TYPE_MNT: u8 = 7;

/// Bytes of one read; an event of this kind has 40.
const READ_BYTES: usize = 16 * 1024;
/// More reads than this in one drain are an event storm: everything is listed afresh instead.
const READS_MAX: u32 = 256;

/// What happened since the last drain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// These mounts, by unique id, were attached or detached (an id may come twice).
    Mounts(Vec<u64>),
    /// The kernel dropped some: only a fresh list tells.
    Lost,
}

/// A watch on the mounts of this process' namespace.
#[derive(Debug)]
pub struct MountEvents {
    group: Fanotify,
}

impl MountEvents {
    /// Begins to watch. Fails with EINVAL where the kernel is older, with EPERM where it is not allowed.
    pub fn watch() -> Outcome<MountEvents> {
        let flags =
            InitFlags::FAN_CLOEXEC | InitFlags::FAN_NONBLOCK | InitFlags::from_bits_retain(FAN_REPORT_MNT);
        let group = Fanotify::init(flags, EventFFlags::O_RDONLY | EventFFlags::O_CLOEXEC)
            .step("fanotify_init for")?;
        let namespace = std::fs::File::open("/proc/self/ns/mnt").step("open the mount namespace for")?;
        group
            .mark(
                MarkFlags::FAN_MARK_ADD | MarkFlags::from_bits_retain(FAN_MARK_MNTNS),
                MaskFlags::from_bits_retain(FAN_MNT_ATTACH | FAN_MNT_DETACH),
                &namespace,
                None::<&std::path::Path>,
            )
            .step("fanotify_mark for")?;
        Ok(MountEvents { group })
    }

    /// Takes everything that was reported until now; never waits.
    pub fn drain(&self) -> Outcome<Changes> {
        let mut ids = Vec::new();
        let mut buffer = [0u8; READ_BYTES];
        for _ in 0..READS_MAX {
            match rustix::io::read(self.group.as_fd(), &mut buffer) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(Changes::Mounts(ids)),
                Ok(length) => match parse(&buffer[..length])? {
                    Changes::Mounts(more) => ids.extend(more),
                    Changes::Lost => return Ok(Changes::Lost),
                },
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Failure { step: "read mount events for", errno }),
            }
        }
        Ok(Changes::Lost)
    }
}

/// Sizes and offsets of `struct fanotify_event_metadata`, and of the information record behind it.
const METADATA_BYTES: usize = 24;
const OFFSET_METADATA_LENGTH: usize = 6;
const OFFSET_MASK: usize = 8;
const OFFSET_RECORD_LENGTH: usize = 2;
const OFFSET_MOUNT_ID: usize = 8;

fn parse(mut events: &[u8]) -> Outcome<Changes> {
    let garbled = Failure { step: "understand mount events for", errno: Errno::PROTO };
    let mut ids = Vec::new();
    while !events.is_empty() {
        let length = u32::from_ne_bytes(field(events, 0).ok_or(garbled)?) as usize;
        let event = events.get(..length).filter(|event| event.len() >= METADATA_BYTES).ok_or(garbled)?;
        if u64::from_ne_bytes(field(event, OFFSET_MASK).ok_or(garbled)?) & FAN_Q_OVERFLOW != 0 {
            return Ok(Changes::Lost);
        }
        let metadata = u16::from_ne_bytes(field(event, OFFSET_METADATA_LENGTH).ok_or(garbled)?) as usize;
        ids.extend(mount_ids(event.get(metadata..).ok_or(garbled)?).ok_or(garbled)?);
        events = &events[length..];
    }
    Ok(Changes::Mounts(ids))
}

fn mount_ids(mut records: &[u8]) -> Option<Vec<u64>> {
    let mut ids = Vec::new();
    while let Some(&kind) = records.first() {
        let length = u16::from_ne_bytes(field(records, OFFSET_RECORD_LENGTH)?) as usize;
        let record = records.get(..length).filter(|record| !record.is_empty())?;
        if kind == FAN_EVENT_INFO_TYPE_MNT {
            ids.push(u64::from_ne_bytes(field(record, OFFSET_MOUNT_ID)?));
        }
        records = &records[length..];
    }
    Some(ids)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(mask: u64, records: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(((METADATA_BYTES + records.len()) as u32).to_ne_bytes());
        bytes.extend([3, 0]);
        bytes.extend((METADATA_BYTES as u16).to_ne_bytes());
        bytes.extend(mask.to_ne_bytes());
        bytes.extend([0xff; 8]);
        bytes.extend(records);
        bytes
    }

    fn record(kind: u8, id: u64) -> Vec<u8> {
        let mut bytes = vec![kind, 0];
        bytes.extend(16u16.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(id.to_ne_bytes());
        bytes
    }

    #[test]
    fn every_event_names_its_mount() {
        let mut bytes = event(FAN_MNT_ATTACH, &record(7, 11));
        bytes.extend(event(FAN_MNT_DETACH, &[record(9, 1), record(7, 12)].concat()));
        assert_eq!(parse(&bytes), Ok(Changes::Mounts(vec![11, 12])));
    }

    #[test]
    fn an_overflow_says_that_something_was_lost() {
        let bytes = [event(FAN_MNT_ATTACH, &record(7, 11)), event(FAN_Q_OVERFLOW, &[])].concat();
        assert_eq!(parse(&bytes), Ok(Changes::Lost));
    }

    #[test]
    fn what_is_cut_short_is_an_error() {
        let whole = event(FAN_MNT_ATTACH, &record(7, 11));
        for length in 1..whole.len() {
            assert_eq!(parse(&whole[..length]).unwrap_err().errno, Errno::PROTO, "{length}");
        }
        assert_eq!(parse(&event(FAN_MNT_ATTACH, &[7, 0, 0, 0])).unwrap_err().errno, Errno::PROTO);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_loop(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
