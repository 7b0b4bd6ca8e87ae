//! What the running binary may still do (its filter of system calls, its capabilities), and who may touch what it makes.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use tokio::process::Command;

use super::host::{Driver, Host, eventually, sockets_in};

/// SECCOMP_MODE_FILTER, as `/proc/PID/status` shows it.
const FILTERED: &str = "2";
/// CHOWN, DAC_OVERRIDE, FOWNER, FSETID and SYS_ADMIN by their numbers.
const RIGHTS_MAX: u64 = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4 | 1 << 21;

#[track_caller]
fn every_thread(driver: &Driver, field: &str, is_right: impl Fn(&str) -> bool) {
    let threads = driver.status_of_threads(field);
    assert!(threads.len() >= 3, "{field}: only {} threads", threads.len());
    assert!(threads.iter().all(|value| is_right(value)), "{field}: {threads:?}");
}

#[tokio::test]
async fn every_thread_has_the_filter_and_no_right_too_many() {
    let host = Host::start().await;
    let driver = host.start_driver().await;
    host.publish("example-store", "u1").await.expect("published");
    every_thread(&driver, "Seccomp", |mode| mode == FILTERED);
    every_thread(&driver, "NoNewPrivs", |set| set == "1");
    let few = |rights: &str| u64::from_str_radix(rights, 16).is_ok_and(|rights| rights & !RIGHTS_MAX == 0);
    for field in ["CapPrm", "CapEff", "CapBnd"] {
        every_thread(&driver, field, few);
    }
    for field in ["CapInh", "CapAmb"] {
        every_thread(&driver, field, |rights| u64::from_str_radix(rights, 16) == Ok(0));
    }
}

#[tokio::test]
async fn the_filter_can_be_switched_off_and_that_is_told() {
    let host = Host::start().await;
    let mut command = host.serve();
    command.env("PER_NODE_SECCOMP", "off");
    let driver = host.spawn(command, "driver.log");
    host.is_served().await;
    every_thread(&driver, "Seccomp", |mode| mode == "0");
    every_thread(&driver, "NoNewPrivs", |set| set == "1");
    assert!(driver.log().contains("--seccomp=off"), "{}", driver.log());
}

/// The command, started by a shell with that umask.
fn with_umask(command: &Command, umask: &str) -> Command {
    let command = command.as_std();
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"umask "$0" && exec "$@""#, umask]).arg(command.get_program());
    shell.args(command.get_args()).env_clear().kill_on_drop(true);
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .permissions()
        .mode()
        & 0o7777
}

#[tokio::test]
async fn c06_sockets_records_and_directories_are_roots_alone_whatever_the_umask() {
    for umask in ["0000", "0022", "0777"] {
        let host = Host::start().await;
        let registry = host.path("kubelet/plugins_registry");
        let mut command = host.serve();
        command.env("PER_NODE_REGISTRATION_DIR", &registry);
        let _driver = host.spawn(with_umask(&command, umask), "driver.log");
        host.is_served().await;
        host.publish("example-store", "u1").await.expect("published");
        eventually(|| !sockets_in(&registry).is_empty()).await;
        let sockets = [host.socket(), host.path("store/console.sock"), sockets_in(&registry).remove(0)];
        for socket in &sockets {
            let found = fs::symlink_metadata(socket).expect("the socket");
            assert!(found.file_type().is_socket());
            // A stricter umask takes the owner's rights, too, which root does without.
            assert_eq!(mode(socket) & 0o177, 0, "umask {umask}: {}", socket.display());
        }
        for directory in ["copies", "trash", "holds"] {
            assert_eq!(mode(&host.path("store").join(directory)), 0o700, "umask {umask}: {directory}");
        }
        for entry in fs::read_dir(host.path("store/holds")).expect("read") {
            let path = entry.expect("an entry").path();
            assert_eq!(mode(&path) & 0o177, 0, "umask {umask}: {}", path.display());
        }
        assert_eq!(mode(&host.path("store/lock")) & 0o177, 0, "umask {umask}");
        assert_eq!(mode(&host.path("store/copies/example-store")), 0o777, "umask {umask}");
    }
}
