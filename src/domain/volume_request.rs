//! What a publish asks for, as it arrived and as it is once checked (C4, C5, C7).
//!
//! `volumeAttributes`, secrets and `fsType` have no place here: they can never reach a path or a flag.

use thiserror::Error;

use super::mount_options::{MountOptions, MountOptionsError};
use super::pod::PodInfo;

/// A NodePublishVolume as it arrived, less its secrets.
#[derive(Debug, Clone, Default)]
pub struct PublishRequest {
    pub volume_id: String,
    pub target_path: String,
    pub capability: Option<VolumeCapability>,
    pub readonly: bool,
    pub pod: PodInfo,
}

/// A NodeUnpublishVolume as it arrived.
#[derive(Debug, Clone, Default)]
pub struct UnpublishRequest {
    pub volume_id: String,
    pub target_path: String,
}

/// A volume capability as it arrived.
#[derive(Debug, Clone, Default)]
pub struct VolumeCapability {
    pub access_type: Option<AccessType>,
    /// The number on the wire; `None` where the message was absent.
    pub access_mode: Option<i32>,
}

/// The access type as it arrived.
#[derive(Debug, Clone)]
pub enum AccessType {
    Block,
    Mount { flags: Vec<String>, volume_mount_group: String },
}

/// The access modes of CSI 1.13 by their numbers. All are published the same way (C4); that they are known
/// is all that is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessMode {
    SingleNodeWriter = 1,
    SingleNodeReaderOnly = 2,
    MultiNodeReaderOnly = 3,
    MultiNodeSingleWriter = 4,
    MultiNodeMultiWriter = 5,
    SingleNodeSingleWriter = 6,
    SingleNodeMultiWriter = 7,
}

/// A numeric group id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gid(pub u32);

/// What a checked publish does to the mount and to the copy's root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeAsk {
    pub readonly: bool,
    pub options: MountOptions,
    /// Applied to the copy's root (C7); never on a read-only publish.
    pub group: Option<Gid>,
}

/// Why a request is no valid publish. The texts become event messages.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RequestError {
    #[error("the request has no volume capability")]
    NoCapability,
    #[error("the volume capability has no access type")]
    NoAccessType,
    #[error("a block volume is asked for: set volumeMode: Filesystem")]
    Block,
    #[error("the volume capability has no access mode")]
    NoAccessMode,
    #[error("the access mode {mode} is unknown")]
    UnknownAccessMode { mode: i32 },
    #[error("the volume mount group is not a numeric group id")]
    MountGroup,
    #[error("{0}")]
    Options(MountOptionsError),
}

impl AccessMode {
    pub fn from_wire(mode: i32) -> Option<AccessMode> {
        match mode {
            1 => Some(AccessMode::SingleNodeWriter),
            2 => Some(AccessMode::SingleNodeReaderOnly),
            3 => Some(AccessMode::MultiNodeReaderOnly),
            4 => Some(AccessMode::MultiNodeSingleWriter),
            5 => Some(AccessMode::MultiNodeMultiWriter),
            6 => Some(AccessMode::SingleNodeSingleWriter),
            7 => Some(AccessMode::SingleNodeMultiWriter),
            _ => None,
        }
    }
}

impl PublishRequest {
    /// Checks everything but the handle and the target path.
    pub fn check(&self) -> Result<VolumeAsk, RequestError> {
        let capability = self.capability.as_ref().ok_or(RequestError::NoCapability)?;
        let (flags, volume_mount_group) = match &capability.access_type {
            None => return Err(RequestError::NoAccessType),
            Some(AccessType::Block) => return Err(RequestError::Block),
            Some(AccessType::Mount { flags, volume_mount_group }) => (flags, volume_mount_group),
        };
        let mode = capability.access_mode.ok_or(RequestError::NoAccessMode)?;
        AccessMode::from_wire(mode).ok_or(RequestError::UnknownAccessMode { mode })?;
        let options = MountOptions::parse(flags, self.readonly).map_err(RequestError::Options)?;
        let group = Gid::parse(volume_mount_group)?;
        Ok(VolumeAsk { readonly: self.readonly, options, group: if self.readonly { None } else { group } })
    }
}

impl Gid {
    /// Reads the decimal number that the kubelet sends; an empty text asks for no group. The highest number
    /// is the kernel's word for "leave it" and no group.
    fn parse(raw: &str) -> Result<Option<Gid>, RequestError> {
        if raw.is_empty() {
            return Ok(None);
        }
        if !raw.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(RequestError::MountGroup);
        }
        match raw.parse::<u32>() {
            Ok(gid) if gid != u32::MAX => Ok(Some(Gid(gid))),
            Ok(_) | Err(_) => Err(RequestError::MountGroup),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(access_type: Option<AccessType>, access_mode: Option<i32>) -> PublishRequest {
        PublishRequest {
            capability: Some(VolumeCapability { access_type, access_mode }),
            ..PublishRequest::default()
        }
    }

    fn mount(flags: &[&str], group: &str) -> Option<AccessType> {
        let flags = flags.iter().map(|&f| f.to_owned()).collect();
        Some(AccessType::Mount { flags, volume_mount_group: group.to_owned() })
    }

    #[test]
    fn c04_every_known_access_mode_is_published_the_same_way() {
        let first = request(mount(&[], ""), Some(1)).check().unwrap();
        for mode in 2..=7 {
            assert_eq!(request(mount(&[], ""), Some(mode)).check().unwrap(), first);
        }
    }

    #[test]
    fn c05_what_cannot_be_published_is_named() {
        let mut bare = request(mount(&[], ""), Some(1));
        bare.capability = None;
        assert_eq!(bare.check(), Err(RequestError::NoCapability));
        assert_eq!(request(None, Some(1)).check(), Err(RequestError::NoAccessType));
        assert_eq!(request(Some(AccessType::Block), Some(1)).check(), Err(RequestError::Block));
        assert_eq!(request(mount(&[], ""), None).check(), Err(RequestError::NoAccessMode));
        for mode in [0, 8, -1, i32::MAX] {
            let expect = Err(RequestError::UnknownAccessMode { mode });
            assert_eq!(request(mount(&[], ""), Some(mode)).check(), expect);
        }
        let expect = Err(RequestError::Options(MountOptionsError::Unsupported));
        assert_eq!(request(mount(&["bind"], ""), Some(1)).check(), expect);
    }

    #[test]
    fn c07_a_group_is_a_number_and_not_for_a_read_only_publish() {
        let ask = |group: &str| request(mount(&[], group), Some(5)).check().map(|ask| ask.group);
        assert_eq!(ask(""), Ok(None));
        assert_eq!(ask("2000"), Ok(Some(Gid(2000))));
        for group in ["x", "-1", "+5", "4294967295", "4294967296", " 1", "1.0"] {
            assert_eq!(ask(group), Err(RequestError::MountGroup), "{group:?}");
        }
        let mut readonly = request(mount(&[], "2000"), Some(5));
        readonly.readonly = true;
        assert_eq!(readonly.check().unwrap().group, None);
    }
}
