//! The settings that are not plain run beside those that are: a process for each, two at a time, in a mount
//! namespace of its own, and in a user namespace where the setting says so. It finds the file systems that are made here.

use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::sync::{Arc, Condvar, Mutex};

use libtest_mimic::Failed;

use crate::ground;
use crate::namespace::{self, Peer};
use crate::setting::Setting;

/// How many processes there are at a time: most of what they do is to wait for the kernel.
const AT_ONCE: usize = 2;

/// What the processes said, by the name of their setting.
static TOLD: Mutex<BTreeMap<&str, Output>> = Mutex::new(BTreeMap::new());
static ENDED: Condvar = Condvar::new();

/// Runs every case of the settings; the answers are asked for later.
pub fn begin(settings: Vec<Setting>) {
    for setting in &settings {
        ground::make(setting.file_system);
    }
    // What cases mount here from now on is no concern of theirs.
    let clean = Arc::new(Peer::start());
    let waiting = Arc::new(Mutex::new(settings.into_iter()));
    for _ in 0..AT_ONCE {
        let (clean, waiting) = (Arc::clone(&clean), Arc::clone(&waiting));
        std::thread::spawn(move || {
            loop {
                let Some(setting) = waiting.lock().unwrap().next() else { return };
                let output = run(setting, &clean);
                TOLD.lock().unwrap().insert(setting.name, output);
                ENDED.notify_all();
            }
        });
    }
}

fn run(setting: Setting, clean: &Peer) -> Output {
    let mut command = Command::new("nsenter");
    command.arg(format!("--mount=/proc/{}/ns/mnt", clean.id())).arg(std::env::current_exe().unwrap());
    command.arg(format!("{}::", setting.name)).env(ground::ROOM_VARIABLE, ground::room());
    if setting.user_namespace {
        command.env(namespace::USER_NAMESPACE_VARIABLE, "1");
    }
    command.output().expect("the test binary runs")
}

/// How the case went there.
pub fn outcome(setting: Setting, case: &str) -> Result<(), Failed> {
    let running = |told: &mut BTreeMap<&str, Output>| !told.contains_key(setting.name);
    let told = ENDED.wait_while(TOLD.lock().unwrap(), running).unwrap();
    let output = &told[setting.name];
    let lines = String::from_utf8_lossy(&output.stdout);
    let line = lines.lines().find(|line| line.split_whitespace().nth(1) == Some(case));
    if line.is_some_and(|line| line.ends_with("... ok")) {
        return Ok(());
    }
    Err(format!("{line:?}\n{}", String::from_utf8_lossy(&output.stderr)).into())
}
