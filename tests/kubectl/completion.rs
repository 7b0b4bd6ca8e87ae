//! The tool by its second name: what kubectl is told of the words that are typed.

use std::process::Command;

#[test]
fn by_its_second_name_it_completes_what_is_typed() {
    let directory = tempfile::tempdir().expect("a directory");
    let name = directory.path().join("kubectl_complete-per_node");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kubectl-per_node"), &name).expect("a second name");
    let told = |words: &[&str]| {
        let output = Command::new(&name).args(words).env_clear().output().expect("it runs");
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    assert_eq!(told(&["why"]), "why\tWhy a pod does not run, with the one thing to do\n:4\n");
    assert_eq!(told(&["doctor", "-o", "w"]).lines().last(), Some(":4"));
    assert_eq!(told(&["status", "--kubeconfig", ""]), ":0\n");
    assert_eq!(told(&["--help", "nothing-like-it"]), ":4\n", "no command line is run");
}
