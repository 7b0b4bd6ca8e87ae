//! What a stopped thread was about to ask the kernel, and how to answer in the kernel's place: the only file here that
//! knows the processor. It never touches a thread that runs.

use nix::libc;
use nix::sys::ptrace;
use nix::unistd::Pid;

/// A system call at its entry: its number and its first arguments.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub number: i64,
    pub arguments: [u64; 4],
}

/// Whether the thread stands at the entry of a call (`Some(true)`), at its exit, or at neither.
pub fn is_at_entry(thread: Pid) -> Option<bool> {
    match ptrace::syscall_info(thread).ok()?.op {
        libc::PTRACE_SYSCALL_INFO_ENTRY => Some(true),
        libc::PTRACE_SYSCALL_INFO_EXIT => Some(false),
        _ => None,
    }
}

#[cfg(target_arch = "x86_64")]
mod here {
    use super::{Call, Pid, ptrace};

    pub const CAN_ANSWER: bool = true;

    pub fn call(thread: Pid) -> nix::Result<Call> {
        let registers = ptrace::getregs(thread)?;
        let arguments = [registers.rdi, registers.rsi, registers.rdx, registers.r10];
        Ok(Call { number: registers.orig_rax as i64, arguments })
    }

    pub fn skip(thread: Pid) -> nix::Result<()> {
        let mut registers = ptrace::getregs(thread)?;
        registers.orig_rax = u64::MAX;
        ptrace::setregs(thread, registers)
    }

    pub fn answer(thread: Pid, errno: i32) -> nix::Result<()> {
        let mut registers = ptrace::getregs(thread)?;
        registers.rax = i64::from(-errno) as u64;
        ptrace::setregs(thread, registers)
    }

    pub fn shorten(thread: Pid, bytes: u64) -> nix::Result<()> {
        let mut registers = ptrace::getregs(thread)?;
        registers.rdx = registers.rdx.min(bytes);
        ptrace::setregs(thread, registers)
    }
}

#[cfg(target_arch = "aarch64")]
mod here {
    use super::{Call, Pid, ptrace};

    pub const CAN_ANSWER: bool = false;

    pub fn call(thread: Pid) -> nix::Result<Call> {
        let registers = ptrace::getregs(thread)?;
        let [first, second, third, fourth, ..] = registers.regs;
        Ok(Call { number: registers.regs[8] as i64, arguments: [first, second, third, fourth] })
    }

    pub fn skip(_: Pid) -> nix::Result<()> {
        Err(nix::errno::Errno::ENOSYS)
    }

    pub fn answer(_: Pid, _: i32) -> nix::Result<()> {
        Err(nix::errno::Errno::ENOSYS)
    }

    pub fn shorten(thread: Pid, bytes: u64) -> nix::Result<()> {
        let mut registers = ptrace::getregs(thread)?;
        registers.regs[2] = registers.regs[2].min(bytes);
        ptrace::setregs(thread, registers)
    }
}

/// Whether calls can be answered in the kernel's place on this processor.
pub use here::CAN_ANSWER;
/// Gives the call at whose exit the thread stands this errno.
pub use here::answer;
/// The call at whose entry the thread stands.
pub use here::call;
/// Has a write at whose entry the thread stands take no more than so many bytes.
pub use here::shorten;
/// Keeps the kernel from carrying out the call at whose entry the thread stands.
pub use here::skip;
