//! The parser of `/proc/PID/mountinfo`: bytes in, one [`MountLine`] per mount out.
//!
//! Pure but for [`read`]. It knows no limit for a line or a number of lines, no encoding (paths are bytes), and it
//! never skips a line that it cannot read: a table that is not understood whole is an error, because a mount that
//! is overlooked is a copy given to two pods (C15).

use std::fmt;

/// One line of mountinfo, unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountLine {
    pub id: u64,
    pub parent: u64,
    /// `major:minor` of the superblock.
    pub device: (u32, u32),
    /// What the mount shows, from the root of its file system; `//deleted` at its end when that is gone.
    pub root: Vec<u8>,
    /// Where, from the root of the reading process.
    pub mount_point: Vec<u8>,
    /// Options of the mount itself (field 6), comma-separated, as they stand.
    pub options: Vec<u8>,
    /// Peer group when the mount is shared (`shared:N` among the optional fields).
    pub shared: Option<u64>,
    /// Peer group that the mount receives from (`master:N`).
    pub master: Option<u64>,
    pub fs_type: Vec<u8>,
    /// Options of the file system below, comma-separated, as they stand; empty where the line has none.
    pub super_options: Vec<u8>,
}

impl MountLine {
    /// Whether field 6 lists `option`.
    pub fn has_option(&self, option: &str) -> bool {
        self.options.split(|&byte| byte == b',').any(|one| one == option.as_bytes())
    }

    /// Whether the last field, the file system's own, lists `option`.
    pub fn has_super_option(&self, option: &[u8]) -> bool {
        self.super_options.split(|&byte| byte == b',').any(|one| one == option)
    }
}

/// Why a table could not be read: the first line (counted from 1) that is no mountinfo line, and what it lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    pub line: usize,
    pub lacks: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {} of mountinfo has no valid {}", self.line, self.lacks)
    }
}

impl std::error::Error for Malformed {}

/// Where the kernel shows this process its own mounts.
pub const MOUNTINFO: &str = "/proc/self/mountinfo";

/// Reads and parses the mounts of this process, afresh.
pub fn read() -> std::io::Result<Vec<MountLine>> {
    parse(&std::fs::read(MOUNTINFO)?).map_err(|bad| std::io::Error::new(std::io::ErrorKind::InvalidData, bad))
}

/// Parses a whole table.
pub fn parse(table: &[u8]) -> Result<Vec<MountLine>, Malformed> {
    let body = table.strip_suffix(b"\n").unwrap_or(table);
    if body.is_empty() {
        return Ok(Vec::new());
    }
    body.split(|&byte| byte == b'\n')
        .enumerate()
        .map(|(index, line)| parse_line(line).map_err(|lacks| Malformed { line: index + 1, lacks }))
        .collect()
}

fn parse_line(line: &[u8]) -> Result<MountLine, &'static str> {
    let mut fields = line.split(|&byte| byte == b' ');
    let id = number(fields.next()).ok_or("mount id")?;
    let parent = number(fields.next()).ok_or("parent id")?;
    let device = fields.next().and_then(device).ok_or("device")?;
    let root = fields.next().filter(|field| !field.is_empty()).map(unescape).ok_or("root")?;
    let mount_point = fields.next().filter(|field| !field.is_empty()).map(unescape).ok_or("mount point")?;
    let options = fields.next().filter(|field| !field.is_empty()).ok_or("options")?.to_vec();
    let (mut shared, mut master) = (None, None);
    loop {
        // Any number of optional fields, of which new kernels may print new ones, up to a lone hyphen.
        let field = fields.next().ok_or("separator")?;
        if field == b"-" {
            break;
        }
        if let Some(group) = field.strip_prefix(b"shared:") {
            shared = Some(number(Some(group)).ok_or("peer group")?);
        } else if let Some(group) = field.strip_prefix(b"master:") {
            master = Some(number(Some(group)).ok_or("peer group")?);
        }
    }
    let fs_type = fields.next().map(unescape).ok_or("file system type")?;
    let super_options = fields.nth(1).unwrap_or_default().to_vec();
    Ok(MountLine { id, parent, device, root, mount_point, options, shared, master, fs_type, super_options })
}

fn number(field: Option<&[u8]>) -> Option<u64> {
    let field = field.filter(|field| !field.is_empty() && field.iter().all(u8::is_ascii_digit))?;
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn device(field: &[u8]) -> Option<(u32, u32)> {
    let colon = field.iter().position(|&byte| byte == b':')?;
    let part = |digits: &[u8]| number(Some(digits)).and_then(|number| u32::try_from(number).ok());
    Some((part(&field[..colon])?, part(&field[colon + 1..])?))
}

/// Undoes the kernel's `\ooo` for space, tab, newline and backslash (and any other byte it may choose to escape). A
/// backslash that begins no such escape stands for itself.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        match tail {
            [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', after @ ..] if first == b'\\' => {
                bytes.push((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'));
                rest = after;
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(line: &str) -> MountLine {
        let mut lines = parse(line.as_bytes()).unwrap();
        assert_eq!(lines.len(), 1);
        lines.remove(0)
    }

    fn lacks(line: &str) -> &'static str {
        parse(line.as_bytes()).unwrap_err().lacks
    }

    #[test]
    fn every_field_is_read() {
        let line =
            one("36 35 98:0 /mnt1 /mnt2 rw,noatime shared:7 master:1 - ext3 /dev/root rw,errors=continue");
        assert_eq!(
            line,
            MountLine {
                id: 36,
                parent: 35,
                device: (98, 0),
                root: b"/mnt1".to_vec(),
                mount_point: b"/mnt2".to_vec(),
                options: b"rw,noatime".to_vec(),
                shared: Some(7),
                master: Some(1),
                fs_type: b"ext3".to_vec(),
                super_options: b"rw,errors=continue".to_vec(),
            }
        );
    }

    #[test]
    fn c49_the_file_systems_own_options_are_whole_words_of_the_last_field() {
        let line = one("1 2 0:3 / /m rw,shutdown - ext4 /dev/x rw,abort,emergency_ro");
        assert!(line.has_super_option(b"emergency_ro") && line.has_super_option(b"abort"));
        assert!(!line.has_super_option(b"emergency") && !line.has_super_option(b"shutdown"));
        // A source without a name leaves its place empty, not out.
        assert_eq!(one("1 2 0:3 / /m rw - tmpfs  rw,size=4k").super_options, b"rw,size=4k");
        assert_eq!(one("1 2 0:3 / /m rw - tmpfs").super_options, b"");
    }

    #[test]
    fn optional_fields_may_be_missing_or_unknown() {
        assert_eq!(one("1 2 0:3 / / rw - tmpfs none rw").shared, None);
        let line = one("1 2 0:3 / / rw unbindable propagate_from:4 shared:9 later:x - tmpfs none rw");
        assert_eq!((line.shared, line.master), (Some(9), None));
    }

    #[test]
    fn a_hyphen_ends_the_optional_fields_only_when_alone() {
        assert_eq!(one("1 2 0:3 /- /- rw - a-b none rw").fs_type, b"a-b");
    }

    #[test]
    fn octal_escapes_stand_for_their_byte() {
        let line = one(r"1 2 0:3 /a\040b /c\011d\012e\134f rw - tmpfs none rw");
        assert_eq!((line.root, line.mount_point), (b"/a b".to_vec(), b"/c\td\ne\\f".to_vec()));
    }

    #[test]
    fn a_backslash_without_three_octal_digits_is_itself() {
        assert_eq!(one(r"1 2 0:3 /a\04 /b\9 rw - tmpfs none rw").root, br"/a\04");
        assert_eq!(one(r"1 2 0:3 /a\477 /b\ rw - tmpfs none rw").root, br"/a\477");
    }

    #[test]
    fn paths_are_bytes_and_need_not_be_utf_8() {
        let lines = parse(b"1 2 0:3 /\xff\xfe /\x80 rw - tmpfs none rw\n").unwrap();
        assert_eq!(
            (lines[0].root.as_slice(), lines[0].mount_point.as_slice()),
            (&b"/\xff\xfe"[..], &b"/\x80"[..])
        );
    }

    #[test]
    fn c15_a_deleted_root_keeps_its_mark() {
        assert_eq!(one("1 2 0:3 /s/trash/x//deleted /t rw - ext4 /dev/x rw").root, b"/s/trash/x//deleted");
    }

    #[test]
    fn an_empty_source_field_is_no_obstacle() {
        assert_eq!(one("1 2 0:3 / /m rw - tmpfs  rw").fs_type, b"tmpfs");
    }

    #[test]
    fn a_line_has_no_limit() {
        let long = "x".repeat(300_000);
        assert_eq!(one(&format!("1 2 0:3 /{long} /m rw - tmpfs none rw")).root.len(), 300_001);
    }

    #[test]
    fn ten_thousand_mounts_are_read_in_order() {
        let table: String =
            (0..10_000).map(|n| format!("{n} 1 0:3 /r{n} /m{n} rw shared:{n} - tmpfs none rw\n")).collect();
        let lines = parse(table.as_bytes()).unwrap();
        assert_eq!(lines.len(), 10_000);
        assert_eq!((lines[9_999].id, lines[9_999].mount_point.as_slice()), (9_999, &b"/m9999"[..]));
    }

    #[test]
    fn an_empty_table_has_no_mounts() {
        assert_eq!(parse(b"").unwrap(), []);
    }

    #[test]
    fn c15_a_line_that_is_not_understood_fails_the_whole_table() {
        let good = "1 2 0:3 / / rw - tmpfs none rw";
        let table = format!("{good}\n{good}\nnonsense\n{good}\n");
        assert_eq!(parse(table.as_bytes()), Err(Malformed { line: 3, lacks: "mount id" }));
        assert_eq!(lacks("1 2 03 / / rw - tmpfs none rw"), "device");
        assert_eq!(lacks("1 x 0:3 / / rw - tmpfs none rw"), "parent id");
        assert_eq!(lacks("1 2 0:3  / rw - tmpfs none rw"), "root");
        assert_eq!(lacks("1 2 0:3 / / rw shared:x - tmpfs none rw"), "peer group");
        assert_eq!(lacks("1 2 0:3 / / rw shared:1 tmpfs none rw"), "separator");
        assert_eq!(lacks("1 2 0:3 / / rw -"), "file system type");
        assert_eq!(lacks("+1 2 0:3 / / rw - tmpfs none rw"), "mount id");
    }

    #[test]
    fn options_are_compared_whole() {
        let line = one("1 2 0:3 / / ro,nosuid,relatime - tmpfs none rw");
        assert!(line.has_option("ro") && line.has_option("nosuid"));
        assert!(!line.has_option("suid") && !line.has_option("rw") && !line.has_option("r"));
    }

    #[test]
    fn the_mounts_of_this_process_are_read() {
        let lines = read().unwrap();
        assert!(lines.iter().any(|line| line.mount_point == b"/proc"), "{lines:?}");
    }

    /// As the kernel prints a path: four bytes escaped, the rest as they are.
    fn escaped(path: &[u8]) -> Vec<u8> {
        let mut field = Vec::new();
        for &byte in path {
            match byte {
                b' ' | b'\t' | b'\n' | b'\\' => field.extend(format!("\\{byte:03o}").bytes()),
                other => field.push(other),
            }
        }
        field
    }

    fn path() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(1u8..=255, 0..40).prop_map(|mut name| {
            name.insert(0, b'/');
            name
        })
    }

    proptest! {
        #[test]
        fn what_the_kernel_prints_is_what_is_read(
            mounts in proptest::collection::vec((path(), path(), any::<u64>(), any::<(u32, u32)>()), 1..8),
        ) {
            let mut table = Vec::new();
            for (root, point, id, (major, minor)) in &mounts {
                table.extend(format!("{id} {id} {major}:{minor} ").bytes());
                table.extend(escaped(root));
                table.push(b' ');
                table.extend(escaped(point));
                table.extend(b" rw shared:1 - tmpfs none rw\n");
            }
            let lines = parse(&table).unwrap();
            prop_assert_eq!(lines.len(), mounts.len());
            for (line, (root, point, id, device)) in lines.iter().zip(&mounts) {
                prop_assert_eq!((&line.root, &line.mount_point, line.id, line.device), (root, point, *id, *device));
            }
        }

        #[test]
        fn no_input_makes_it_panic(table in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&table);
        }
    }
}
