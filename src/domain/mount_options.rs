//! Mount flags: the ones a volume may ask for (C5), and the ones a live mount has.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How the kernel keeps access times on a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AccessTime {
    /// Updated when older than the modification time, or a day old: the kernel's default.
    Relative,
    /// Never updated.
    Never,
    /// Updated at each read.
    Strict,
}

/// What a publish asks of its mount. `None` leaves a flag as the store's own mount has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MountOptions {
    pub read_only: Option<bool>,
    pub no_exec: Option<bool>,
    pub no_suid: Option<bool>,
    pub no_dev: Option<bool>,
    pub no_dir_access_time: Option<bool>,
    pub access_time: Option<AccessTime>,
}

/// The flags of a live mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountFlags {
    pub read_only: bool,
    pub no_exec: bool,
    pub no_suid: bool,
    pub no_dev: bool,
    pub no_dir_access_time: bool,
    pub access_time: AccessTime,
}

/// A mount flag that no copy can be published with.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MountOptionsError {
    #[error(
        "a mount option is not supported: use ro, noexec, nosuid, nodev, noatime, nodiratime, relatime or \
         their opposites in spec.mountOptions"
    )]
    Unsupported,
    #[error("the mount options have more than 4096 bytes")]
    TooLong,
}

/// The limit that the CSI specification puts on all mount flags together, in bytes.
const MOUNT_FLAGS_LENGTH_MAX: usize = 4096;

impl MountOptions {
    /// Reads mount flags as mount(8) would: each entry may hold several, separated by commas, and of two that
    /// contradict each other the later wins. `readonly` wins over them all (C4). The text of a flag is never
    /// repeated in an error: the specification calls it sensitive.
    pub fn parse(flags: &[String], readonly: bool) -> Result<MountOptions, MountOptionsError> {
        if flags.iter().map(|flag| flag.len()).sum::<usize>() > MOUNT_FLAGS_LENGTH_MAX {
            return Err(MountOptionsError::TooLong);
        }
        let mut options = MountOptions::default();
        for flag in flags.iter().flat_map(|entry| entry.split(',')) {
            options.apply(flag)?;
        }
        if readonly {
            options.read_only = Some(true);
        }
        Ok(options)
    }

    fn apply(&mut self, flag: &str) -> Result<(), MountOptionsError> {
        match flag {
            "ro" => self.read_only = Some(true),
            "rw" => self.read_only = Some(false),
            "noexec" => self.no_exec = Some(true),
            "exec" => self.no_exec = Some(false),
            "nosuid" => self.no_suid = Some(true),
            "suid" => self.no_suid = Some(false),
            "nodev" => self.no_dev = Some(true),
            "dev" => self.no_dev = Some(false),
            "nodiratime" => self.no_dir_access_time = Some(true),
            "diratime" => self.no_dir_access_time = Some(false),
            "noatime" => self.access_time = Some(AccessTime::Never),
            "atime" | "relatime" => self.access_time = Some(AccessTime::Relative),
            "norelatime" => self.access_time = Some(AccessTime::Strict),
            _ => return Err(MountOptionsError::Unsupported),
        }
        Ok(())
    }

    /// Whether a live mount is as asked.
    pub fn are_met_by(&self, flags: &MountFlags) -> bool {
        let met = |asked: Option<bool>, is: bool| asked.is_none_or(|asked| asked == is);
        met(self.read_only, flags.read_only)
            && met(self.no_exec, flags.no_exec)
            && met(self.no_suid, flags.no_suid)
            && met(self.no_dev, flags.no_dev)
            && met(self.no_dir_access_time, flags.no_dir_access_time)
            && self.access_time.is_none_or(|asked| asked == flags.access_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn parsed(flags: &[&str], readonly: bool) -> Result<MountOptions, MountOptionsError> {
        MountOptions::parse(&flags.iter().map(|&f| f.to_owned()).collect::<Vec<_>>(), readonly)
    }

    #[test]
    fn c05_flags_may_be_as_long_as_csi_lets_them() {
        let longest = ["ro"; MOUNT_FLAGS_LENGTH_MAX / 2];
        assert!(parsed(&longest, false).is_ok());
        assert_eq!(parsed(&[&longest[..], &["ro"]].concat(), false), Err(MountOptionsError::TooLong));
    }

    #[test]
    fn c05_every_supported_flag_and_its_opposite_is_read() {
        let all = parsed(&["ro", "noexec,nosuid", "nodev", "noatime", "nodiratime"], false).unwrap();
        assert_eq!(
            all,
            MountOptions {
                read_only: Some(true),
                no_exec: Some(true),
                no_suid: Some(true),
                no_dev: Some(true),
                no_dir_access_time: Some(true),
                access_time: Some(AccessTime::Never),
            }
        );
        let none = parsed(&["rw", "exec", "suid", "dev", "diratime", "norelatime"], false).unwrap();
        assert_eq!(
            none,
            MountOptions {
                read_only: Some(false),
                no_exec: Some(false),
                no_suid: Some(false),
                no_dev: Some(false),
                no_dir_access_time: Some(false),
                access_time: Some(AccessTime::Strict),
            }
        );
        for flag in ["atime", "relatime"] {
            assert_eq!(parsed(&[flag], false).unwrap().access_time, Some(AccessTime::Relative));
        }
    }

    #[test]
    fn c05_any_other_flag_is_refused_and_not_repeated() {
        for flag in ["bind", "", "ro ", "context=secret", "RO", "rbind", "remount", "ro,"] {
            let error = parsed(&[flag], false).unwrap_err();
            assert_eq!(error, MountOptionsError::Unsupported, "{flag:?}");
            assert!(!error.to_string().contains("secret"));
        }
        assert_eq!(parsed(&["ro", &"x".repeat(4095)], false), Err(MountOptionsError::TooLong));
    }

    #[test]
    fn c04_readonly_wins_over_any_flag() {
        assert_eq!(parsed(&["rw"], true).unwrap().read_only, Some(true));
        assert_eq!(parsed(&[], false).unwrap().read_only, None);
        assert_eq!(parsed(&["ro", "rw"], false).unwrap().read_only, Some(false));
    }

    #[test]
    fn c05_a_mount_is_held_to_what_was_asked_and_no_more() {
        let live = MountFlags {
            read_only: false,
            no_exec: true,
            no_suid: true,
            no_dev: true,
            no_dir_access_time: false,
            access_time: AccessTime::Relative,
        };
        assert!(parsed(&[], false).unwrap().are_met_by(&live));
        assert!(parsed(&["noexec", "relatime", "rw"], false).unwrap().are_met_by(&live));
        for flag in ["ro", "exec", "suid", "dev", "nodiratime", "noatime", "norelatime"] {
            assert!(!parsed(&[flag], false).unwrap().are_met_by(&live), "{flag}");
        }
    }
}
