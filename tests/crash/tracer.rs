//! A driver process under ptrace: its steps are counted in one order over all its threads, and it is killed with SIGKILL
//! right before or right after the step that is asked for. The product knows nothing of it.
//!
//! A thread of its own is the tracer, because the kernel takes its calls from no other.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::node::PATIENCE;
use crate::registers;
use crate::steps;

/// When the process is killed: at the step with this number, counted from 0 since the count began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kill {
    Never,
    Before(usize),
    After(usize),
    /// A write of which only the first bytes arrived. Any other step is not begun.
    Within(usize),
    /// After the step of this name that comes so many of its name later than the first.
    AfterNamed(&'static str, usize),
}

/// A call that the kernel is kept from carrying out, and what the process is told instead.
#[derive(Debug, Clone, Copy)]
pub struct Denied {
    pub number: i64,
    pub errno: i32,
    /// Only while steps are counted.
    pub counted_only: bool,
}

/// How the process is to be treated.
#[derive(Debug, Clone)]
pub struct Treatment {
    pub kill: Kill,
    pub denied: Vec<Denied>,
    /// Count from the process's first instant, rather than from [`Traced::count`] on.
    pub from_the_start: bool,
}

/// How long a process makes no step that has come to rest: longer than any pause before it asks the API server.
const REST: Duration = Duration::from_millis(1_500);
/// How many bytes of a record a write within which the process dies still brings.
const TORN_BYTES: u64 = 100;

#[derive(Default)]
struct Shared {
    counting: AtomicBool,
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Default)]
struct Seen {
    /// Those that were counted.
    steps: Vec<&'static str>,
    /// How many were made at all.
    made: u64,
    pid: Option<Pid>,
    is_dead: bool,
}

/// The process. It dies with this.
pub struct Traced {
    shared: Arc<Shared>,
    tracer: Option<JoinHandle<()>>,
}

impl Traced {
    /// Starts `command` (a shell that waits for a line and then becomes it stands for it until it is traced).
    pub fn start(command: &Command, log: &Path, treatment: Treatment) -> Traced {
        let shared = Arc::new(Shared::default());
        shared.counting.store(treatment.from_the_start, Ordering::SeqCst);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "read line; exec \"$@\"", "sh"])
            .arg(command.get_program())
            .args(command.get_args());
        shell.env_clear().envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(File::create(log).expect("a log"));
        let tracer = {
            let shared = shared.clone();
            std::thread::spawn(move || Tracer { shared, treatment, threads: HashMap::new() }.trace(shell))
        };
        Traced { shared, tracer: Some(tracer) }
    }

    /// Counts steps from here on.
    pub fn count(&self) {
        self.shared.counting.store(true, Ordering::SeqCst);
    }

    /// The steps so far.
    pub fn steps(&self) -> Vec<&'static str> {
        self.shared.seen.lock().expect("lock").steps.clone()
    }

    pub fn is_dead(&self) -> bool {
        self.shared.seen.lock().expect("lock").is_dead
    }

    /// Waits until nothing of the process is left, which includes its lock on the store.
    pub fn wait_dead(&self) {
        let seen = self.shared.seen.lock().expect("lock");
        let waited = self.shared.changed.wait_timeout_while(seen, PATIENCE, |seen| !seen.is_dead);
        assert!(!waited.expect("lock").1.timed_out(), "the process does not end");
    }

    /// Kills it here and now.
    pub fn kill(&self) {
        let pid = self.shared.seen.lock().expect("lock").pid;
        if let Some(pid) = pid.filter(|_| !self.is_dead()) {
            // Not yet waited for by the tracer, or gone: then there is nobody to kill.
            let _ = kill(pid, Signal::SIGKILL);
        }
        self.wait_dead();
    }

    /// Waits until no step was made for [`REST`], or the process is dead: what it does by itself has come to rest.
    pub fn wait_quiet(&self) {
        let mut seen = self.shared.seen.lock().expect("lock");
        loop {
            let made = seen.made;
            let rested = |seen: &mut Seen| seen.made == made && !seen.is_dead;
            let (next, rest) = self.shared.changed.wait_timeout_while(seen, REST, rested).expect("lock");
            if rest.timed_out() || next.is_dead {
                return;
            }
            seen = next;
        }
    }
}

impl Traced {
    /// Waits until the process died where it was to. One that has come to rest without having met the place (what it does
    /// by itself comes when it comes) is killed then.
    pub fn dies_or_rests(&self) {
        self.wait_quiet();
        self.kill();
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.kill();
        } else if let Some(pid) = self.shared.seen.lock().ok().and_then(|seen| seen.pid) {
            let _ = kill(pid, Signal::SIGKILL);
        }
        if let Some(tracer) = self.tracer.take() {
            let _ = tracer.join();
        }
    }
}

/// What is to happen at the exit of the call that a thread is in.
enum Pending {
    Answer(i32),
    Kill,
}

struct Tracer {
    shared: Arc<Shared>,
    treatment: Treatment,
    threads: HashMap<Pid, Pending>,
}

impl Tracer {
    // It is waited for below, by the tracer's own call: that one tells of its threads too.
    #[allow(clippy::zombie_processes)]
    fn trace(mut self, mut shell: Command) {
        let mut child = shell.spawn().expect("a shell");
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
        let options = Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEEXEC
            | Options::PTRACE_O_EXITKILL;
        ptrace::seize(pid, options).expect("the process can be traced");
        ptrace::interrupt(pid).expect("the process stops");
        self.shared.seen.lock().expect("lock").pid = Some(pid);
        child.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("the shell reads");
        let is_own = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        loop {
            match waitpid(Pid::from_raw(-1), Some(is_own)) {
                Ok(WaitStatus::Exited(of, _) | WaitStatus::Signaled(of, _, _)) => {
                    if of == pid {
                        break;
                    }
                }
                Ok(WaitStatus::PtraceSyscall(thread)) => {
                    self.at_a_call(pid, thread);
                    go_on(thread, None);
                }
                Ok(WaitStatus::PtraceEvent(thread, _, _)) => go_on(thread, None),
                Ok(WaitStatus::Stopped(thread, signal)) => go_on(thread, Some(signal)),
                Ok(WaitStatus::Continued(_) | WaitStatus::StillAlive) | Err(Errno::EINTR) => {}
                Err(error) => {
                    panic!("nothing is left to wait for, and the process was not seen to end: {error}")
                }
            }
        }
        self.shared.seen.lock().expect("lock").is_dead = true;
        self.shared.changed.notify_all();
    }

    fn at_a_call(&mut self, process: Pid, thread: Pid) {
        match registers::is_at_entry(thread) {
            Some(true) => self.at_entry(process, thread),
            Some(false) => match self.threads.remove(&thread) {
                Some(Pending::Answer(errno)) => {
                    registers::answer(thread, errno).expect("calls can be answered")
                }
                Some(Pending::Kill) => kill_now(process),
                None => {}
            },
            None => {}
        }
    }

    fn at_entry(&mut self, process: Pid, thread: Pid) {
        let Ok(call) = registers::call(thread) else { return };
        let counting = self.shared.counting.load(Ordering::SeqCst);
        let is_denied = |denied: &&Denied| denied.number == call.number && (counting || !denied.counted_only);
        if let Some(denied) = self.treatment.denied.iter().find(is_denied) {
            registers::skip(thread).expect("calls can be skipped");
            self.threads.insert(thread, Pending::Answer(denied.errno));
            return;
        }
        let Some(name) = steps::name_of(thread, &call) else { return };
        let Some((number, of_its_name)) = self.take_note(name, counting) else { return };
        match self.treatment.kill {
            Kill::Before(at) if at == number => kill_now(process),
            Kill::After(at) if at == number => {
                self.threads.insert(thread, Pending::Kill);
            }
            Kill::Within(at) if at == number => {
                if call.number == libc::SYS_pwrite64 {
                    registers::shorten(thread, TORN_BYTES).expect("a write can be shortened");
                    self.threads.insert(thread, Pending::Kill);
                } else {
                    kill_now(process);
                }
            }
            Kill::AfterNamed(named, at) if named == name && at == of_its_name => {
                self.threads.insert(thread, Pending::Kill);
            }
            Kill::Never | Kill::Before(_) | Kill::After(_) | Kill::Within(_) | Kill::AfterNamed(..) => {}
        }
    }

    /// The numbers of a step that is counted: among all, and among those of its name.
    fn take_note(&self, name: &'static str, counting: bool) -> Option<(usize, usize)> {
        let mut seen = self.shared.seen.lock().expect("lock");
        seen.made += 1;
        self.shared.changed.notify_all();
        if !counting {
            return None;
        }
        let of_its_name = seen.steps.iter().filter(|other| **other == name).count();
        seen.steps.push(name);
        Some((seen.steps.len() - 1, of_its_name))
    }
}

/// Lets a stopped thread run to its next stop. One that was killed meanwhile is no error.
fn go_on(thread: Pid, signal: Option<Signal>) {
    let _ = ptrace::syscall(thread, signal);
}

/// A process that another kill has ended meanwhile is no error.
fn kill_now(process: Pid) {
    let _ = kill(process, Signal::SIGKILL);
}
