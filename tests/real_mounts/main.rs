//! The Linux adapter on real mounts, in a mount namespace of its own, in each setting of `setting`.
//!
//! Before the first thread the process enters a private mount namespace: as root directly, else by way of a user
//! namespace. What needs the real root is left out there and says so; where `PER_NODE_REQUIRE_ROOT=1` is set (in CI)
//! it runs or fails. Nothing outside of the namespace is changed, whatever happens.

mod attach_cases;
mod bench;
mod beside;
#[path = "../contract/mod.rs"]
mod contract;
mod detach_cases;
#[path = "../support/file_system.rs"]
mod file_system;
mod file_system_cases;
mod filtered_cases;
mod ground;
mod growth_cases;
mod health_cases;
mod hostile;
mod image;
mod kept_cases;
mod kernel;
mod look_cases;
mod namespace;
mod removal_cases;
mod setting;
mod showing_cases;
mod store_cases;
mod user_namespace_cases;
mod withheld_cases;
mod world;

use libtest_mimic::{Arguments, Trial};

use file_system::FileSystem;
use namespace::Entered;
use setting::{PLAIN, Setting};

/// A case: its name, and what it shows.
pub struct Case {
    name: String,
    setting: Setting,
    /// What must be made for it, if not what its setting has.
    file_system: FileSystem,
    needs_root: bool,
    run: Box<dyn FnOnce() + Send>,
}

impl Case {
    /// A case that says what it found wrong by panicking.
    pub fn new(name: impl Into<String>, run: impl FnOnce() + Send + 'static) -> Case {
        let file_system = PLAIN.file_system;
        Case { name: name.into(), setting: PLAIN, file_system, needs_root: false, run: Box::new(run) }
    }

    /// A case that runs in a setting.
    pub fn of(self, setting: Setting) -> Case {
        Case { setting, ..self }.on(setting.file_system)
    }

    /// A case that needs such a file system.
    pub fn on(self, file_system: FileSystem) -> Case {
        Case { file_system, ..self }
    }

    /// A case that a user namespace cannot show.
    pub fn needs_root(self) -> Case {
        Case { needs_root: true, ..self }
    }

    /// How the case is run by who entered so; `None` where nobody can.
    fn trial(self, entered: Entered) -> Option<Trial> {
        if self.needs_root && self.setting.user_namespace {
            return None;
        }
        let rootless = entered == Entered::UserNamespace && !ground::is_given();
        let lacks_root = rootless && (self.needs_root || self.file_system != FileSystem::Tmpfs);
        let lacks_tool = !image::can_be_made(self.file_system) && !namespace::everything_is_required();
        let name = self.name.clone();
        let run = move || {
            if is_beside(self.setting, entered) {
                return beside::outcome(self.setting, &name);
            }
            (self.run)();
            Ok(())
        };
        Some(Trial::test(self.name, run).with_ignored_flag(lacks_root || lacks_tool))
    }
}

/// Whether cases of the setting run in another process, and are only asked about here.
fn is_beside(setting: Setting, entered: Entered) -> bool {
    entered == Entered::Root && !ground::is_given() && !setting.is_plain()
}

fn main() -> std::process::ExitCode {
    if std::env::args().nth(1).as_deref() == Some(namespace::PEER_ARGUMENT) {
        return namespace::be_a_peer();
    }
    if std::env::args().nth(1).as_deref() == Some(hostile::MEASURE_ARGUMENT) {
        return hostile::measure();
    }
    let mut arguments = Arguments::from_args();
    // One at a time: the mount table is one for all, and some cases count it. Those of `beside` have tables of their own.
    arguments.test_threads = Some(1);
    let entered = if arguments.list { Entered::Root } else { namespace::enter() };
    let _run = (!arguments.list).then(ground::begin);
    let cases = [
        bench::cases(),
        store_cases::cases(),
        removal_cases::cases(),
        file_system_cases::cases(),
        filtered_cases::cases(),
        attach_cases::cases(),
        detach_cases::cases(),
        look_cases::cases(),
        showing_cases::cases(),
        health_cases::cases(),
        kept_cases::cases(),
        growth_cases::cases(),
        withheld_cases::cases(),
        user_namespace_cases::cases(),
        hostile::cases(),
    ];
    let (mut trials, mut asked, mut beside) = (Vec::new(), Vec::new(), Vec::new());
    for case in cases.into_iter().flatten() {
        let setting = case.setting;
        let Some(trial) = case.trial(entered) else { continue };
        if !is_beside(setting, entered) {
            trials.push(trial);
            continue;
        }
        let runs = !arguments.is_filtered_out(&trial) && !arguments.is_ignored(&trial);
        if runs && !beside.contains(&setting) {
            beside.push(setting);
        }
        asked.push(trial);
    }
    if !arguments.list && !beside.is_empty() {
        beside::begin(beside);
    }
    // What runs elsewhere is waited for last.
    trials.append(&mut asked);
    libtest_mimic::run(&arguments, trials).exit_code()
}
