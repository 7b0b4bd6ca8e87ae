//! kubectl completes `kubectl per-node` by the tool's second name, as docs/kubectl.md has it.

use crate::tool::completed;

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn kubectl_completes_the_commands_and_flags_of_the_tool() {
    let words = |typed: &[&str]| -> Vec<String> {
        let told = completed(typed);
        told.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(words(&["st"]), ["status", ":4"]);
    assert_eq!(words(&["trash", "re"]), ["restore", ":4"]);
    assert_eq!(words(&["status", "-o", "y"]), ["yaml", ":4"]);
    assert_eq!(words(&["status", "--wa"]), ["--watch", "--watch-every", ":4"]);
}
