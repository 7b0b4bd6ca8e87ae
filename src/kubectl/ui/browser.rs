//! Opens the desktop's browser, without telling anybody else the address: what a program is started with can be read by every
//! user of the machine. So the browser is given a file that only this user can read, and that leads on to the address.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::token::Token;
use crate::failure::Failure;

/// What opens a file with the program that the desktop has for it, the first that is there.
#[cfg(target_os = "macos")]
const OPENERS: [&str; 1] = ["open"];
#[cfg(not(target_os = "macos"))]
const OPENERS: [&str; 3] = ["xdg-open", "sensible-browser", "x-www-browser"];

/// The file that leads on, for as long as this lives.
#[derive(Debug)]
pub struct Opened {
    path: PathBuf,
    /// Not waited for: it may be the browser itself.
    _opener: Option<Child>,
}

/// Opens `address`.
///
/// # Errors
/// Where the file cannot be written, or nothing opens it.
pub fn open(address: &str) -> Result<Opened, Failure> {
    let failed = |why: String| Failure::Local { what: "no browser was opened", why };
    let name = format!("kubectl-per-node-{}.html", Token::random()?.reveal());
    let mut opened = Opened { path: std::env::temp_dir().join(name), _opener: None };
    write_private(&opened.path, &leading_to(address)).map_err(|error| failed(error.to_string()))?;
    for opener in OPENERS {
        let mut command = Command::new(opener);
        command.arg(&opened.path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match command.spawn() {
            Ok(child) => {
                opened._opener = Some(child);
                return Ok(opened);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(format!("{opener}: {error}"))),
        }
    }
    Err(failed(format!("none of {} is here; open the address yourself", OPENERS.join(", "))))
}

fn leading_to(address: &str) -> String {
    format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0;url={address}\"><title>kubectl per-node ui</title>\n"
    )
}

/// A new file, read by its owner alone from its first instant.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

impl Drop for Opened {
    fn drop(&mut self) {
        // What is left says where a server was that is no more.
        let _ = fs::remove_file(&self.path);
    }
}
