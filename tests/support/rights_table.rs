//! The table of rights in docs/kubectl.md, as it is written: which command needs which verb on which resource, and where. It
//! checks nothing.

/// One verb on one resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    pub verb: String,
    pub resource: String,
    /// The third column.
    pub place: String,
}

/// What the table has for `command`; never nothing.
pub fn rights_of(command: &str) -> Vec<Right> {
    // As cargo names it to a test that runs: a test binary that was compiled elsewhere may still be fresh.
    let repository = std::env::var("CARGO_MANIFEST_DIR").expect("tests are run by cargo");
    let docs = std::fs::read_to_string(format!("{repository}/docs/kubectl.md")).expect("docs");
    let (_, table) = docs.split_once("\n## Rights\n").expect("the section");
    let rows = table.lines().skip_while(|line| !line.starts_with("| ---")).skip(1);
    let mut rights = Vec::new();
    for row in rows.take_while(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        if words(cells[3]).any(|name| name == command) {
            let resource = words(cells[1]).next().expect("a resource");
            rights.extend(words(cells[0]).map(|verb| Right {
                verb: verb.to_owned(),
                resource: resource.to_owned(),
                place: cells[2].to_owned(),
            }));
        }
    }
    assert!(!rights.is_empty(), "no rights of {command} in docs/kubectl.md");
    rights
}

/// What stands between back-quotes.
fn words(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}
