//! `Debug` for the messages that can carry secrets: it never prints one (C47).
//!
//! `build.rs` leaves the generated `Debug` of these types out, so there is no other way to print them. Secrets are
//! hidden whole; of a context the keys are shown, for a service account token is a value; of mount flags, which CSI
//! calls sensitive too, the number.

use std::collections::BTreeMap;
use std::fmt;

use super::csi;
use super::csi::volume_capability::MountVolume;

/// Stands for the secrets of a request: how many there are.
struct Hidden<'a>(&'a BTreeMap<String, String>);

impl fmt::Debug for Hidden<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} hidden", self.0.len())
    }
}

/// Stands for a context: its keys.
struct Keys<'a>(&'a BTreeMap<String, String>);

impl fmt::Debug for Keys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Writes one `Debug`: fields shown as they are, maps by their keys, and what is hidden.
macro_rules! redacted {
    ($message:ident { $($shown:ident),* } keys { $($context:ident),* } hidden { $($secret:ident),* }) => {
        impl fmt::Debug for csi::$message {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($message))
                    $(.field(stringify!($shown), &self.$shown))*
                    $(.field(stringify!($context), &Keys(&self.$context)))*
                    $(.field(stringify!($secret), &Hidden(&self.$secret)))*
                    .finish()
            }
        }
    };
}

redacted!(NodeStageVolumeRequest { volume_id, staging_target_path, volume_capability }
    keys { publish_context, volume_context } hidden { secrets });
redacted!(NodePublishVolumeRequest { volume_id, staging_target_path, target_path, volume_capability, readonly }
    keys { publish_context, volume_context } hidden { secrets });
redacted!(NodeExpandVolumeRequest { volume_id, volume_path, capacity_range, staging_target_path, volume_capability }
    keys {} hidden { secrets });
redacted!(NodeGetStorageHealthRequest {} keys {} hidden { secrets });
redacted!(CreateVolumeRequest { name, capacity_range, volume_capabilities }
    keys { parameters, mutable_parameters } hidden { secrets });
redacted!(DeleteVolumeRequest { volume_id } keys {} hidden { secrets });
redacted!(ValidateVolumeCapabilitiesRequest { volume_id, volume_capabilities }
    keys { volume_context, parameters, mutable_parameters } hidden { secrets });

impl fmt::Debug for MountVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MountVolume")
            .field("fs_type", &self.fs_type)
            .field("mount_flags", &format_args!("{} hidden", self.mount_flags.len()))
            .field("volume_mount_group", &self.volume_mount_group)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::csi::volume_capability::AccessType;

    /// A value that must not be seen.
    const TOKEN: &str = "eyJhbGciOiJub25lIn0";

    fn secret() -> BTreeMap<String, String> {
        BTreeMap::from([("csi.storage.k8s.io/serviceAccount.tokens".to_owned(), TOKEN.to_owned())])
    }

    fn capability() -> csi::VolumeCapability {
        let mount = MountVolume { mount_flags: vec![TOKEN.to_owned()], ..MountVolume::default() };
        csi::VolumeCapability { access_type: Some(AccessType::Mount(mount)), access_mode: None }
    }

    #[test]
    fn c47_no_message_prints_a_secret_a_token_or_a_mount_flag() {
        let messages = [
            format!(
                "{:?}",
                csi::NodeStageVolumeRequest {
                    secrets: secret(),
                    volume_context: secret(),
                    publish_context: secret(),
                    volume_capability: Some(capability()),
                    ..Default::default()
                }
            ),
            format!(
                "{:?}",
                csi::NodePublishVolumeRequest {
                    secrets: secret(),
                    volume_context: secret(),
                    publish_context: secret(),
                    volume_capability: Some(capability()),
                    ..Default::default()
                }
            ),
            format!(
                "{:#?}",
                csi::NodeExpandVolumeRequest {
                    secrets: secret(),
                    volume_capability: Some(capability()),
                    ..Default::default()
                }
            ),
            format!("{:?}", csi::NodeGetStorageHealthRequest { secrets: secret() }),
            format!(
                "{:?}",
                csi::CreateVolumeRequest { secrets: secret(), parameters: secret(), ..Default::default() }
            ),
            format!("{:?}", csi::DeleteVolumeRequest { secrets: secret(), ..Default::default() }),
            format!(
                "{:?}",
                csi::ValidateVolumeCapabilitiesRequest {
                    secrets: secret(),
                    volume_context: secret(),
                    volume_capabilities: vec![capability()],
                    ..Default::default()
                }
            ),
        ];
        for message in messages {
            assert!(!message.contains(TOKEN), "{message}");
            assert!(message.contains("1 hidden"), "it says that there is one: {message}");
        }
    }

    #[test]
    fn c47_every_message_with_a_secret_field_has_its_debug_here() {
        let proto = include_str!("../../proto/csi.proto");
        let here = include_str!("redact.rs");
        let mut message = "";
        let mut found = 0;
        for line in proto.lines() {
            if let Some(name) = line.strip_prefix("message ") {
                message = name.split(' ').next().unwrap_or_default();
            }
            if line.contains("[(csi_secret) = true") {
                found += 1;
                assert!(here.contains(&format!("redacted!({message} {{")), "{message} prints its secrets");
            }
        }
        assert_eq!(found, 7, "secrets in {found} messages");
    }
}
