//! Which cluster a command speaks to, as kubectl chooses it, and what is said where there is none.

use std::path::Path;

use serde_json::{Value, json};

use crate::objects_api::ObjectsApi;
use crate::tool::command;

/// What the tool answers with this environment and these arguments: exit code, standard output, standard error.
async fn answer(environment: &[(&str, &str)], arguments: &[&str]) -> (i32, String, String) {
    let mut command = command(Path::new(""), arguments);
    command.env_remove("KUBECONFIG").envs(environment.iter().copied());
    let output = command.output().await.expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// A file of the directory, by its path.
fn write(directory: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = directory.path().join(name);
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("mkdir");
    std::fs::write(&path, text).expect("write");
    path.display().to_string()
}

/// A kubeconfig of `api`, its context called `context`.
fn kubeconfig(api: &ObjectsApi, context: &str) -> String {
    let mut config: Value = serde_json::from_str(&api.kubeconfig()).expect("JSON");
    config["current-context"] = context.into();
    for (list, name) in [("contexts", context), ("clusters", context), ("users", context)] {
        config[list][0]["name"] = name.into();
    }
    config["contexts"][0]["context"] = json!({ "cluster": context, "user": context });
    config.to_string()
}

/// An API server with one volume of this name.
async fn with_volume(name: &str) -> ObjectsApi {
    let api = ObjectsApi::start().await;
    let object = json!({
        "metadata": { "name": name },
        "spec": { "csi": { "driver": "per-node.liken.sh", "volumeHandle": name } },
    });
    api.put(&format!("/api/v1/persistentvolumes/{name}"), object);
    api
}

#[tokio::test]
async fn the_flag_goes_before_the_environment_and_that_before_the_home_directory() {
    let (flag, listed, home) =
        (with_volume("of-flag").await, with_volume("of-list").await, with_volume("of-home").await);
    let directory = tempfile::tempdir().expect("a directory");
    let flag_file = write(&directory, "flag", &kubeconfig(&flag, "flag"));
    let list_file = write(&directory, "list", &kubeconfig(&listed, "list"));
    write(&directory, ".kube/config", &kubeconfig(&home, "home"));
    let home_dir = directory.path().display().to_string();
    // As kubectl does, files that are not there are passed over.
    let list = format!("/nowhere/config:{list_file}:{flag_file}");
    let all = [("HOME", home_dir.as_str()), ("KUBECONFIG", list.as_str())];
    let shown = async |environment: &[(&str, &str)], arguments: &[&str]| {
        let (_, out, err) = answer(environment, &[&["status"], arguments].concat()).await;
        out.lines().nth(1).and_then(|line| line.split(' ').next()).map(str::to_owned).ok_or(err)
    };
    assert_eq!(shown(&all, &["--kubeconfig", &flag_file]).await.as_deref(), Ok("of-flag"));
    assert_eq!(shown(&all, &[]).await.as_deref(), Ok("of-list"), "the first file that says it wins");
    assert_eq!(shown(&all, &["--context", "flag"]).await.as_deref(), Ok("of-flag"), "all of them are one");
    assert_eq!(shown(&all[..1], &[]).await.as_deref(), Ok("of-home"));
}

#[tokio::test]
async fn where_there_is_no_cluster_one_line_says_what_to_give() {
    let directory = tempfile::tempdir().expect("a directory");
    let api = ObjectsApi::start().await;
    let good = write(&directory, "good", &kubeconfig(&api, "good"));
    let broken = write(&directory, "broken", "users: [{name: u, user: {token: SECRET\n  : : ]");
    let nowhere = [("HOME", "/nowhere"), ("KUBECONFIG", "/nowhere/config")];
    for (arguments, told) in [
        (vec!["status"], "no kubeconfig: give --kubeconfig"),
        (vec!["status", "--context", "good"], "no kubeconfig: give --kubeconfig"),
        (vec!["status", "--kubeconfig", "/nowhere/config"], "/nowhere/config: it cannot be read"),
        (
            vec!["status", "--kubeconfig", &good, "--context", "other"],
            "failed to load current context: other",
        ),
        (vec!["status", "--kubeconfig", &broken], "it is not the YAML of a kubeconfig"),
    ] {
        let (code, out, err) = answer(&nowhere, &arguments).await;
        assert_eq!((code, out.as_str(), err.lines().count()), (1, "", 1), "{arguments:?}: {err}");
        assert!(err.starts_with("kubectl per-node: ") && err.contains(told), "{arguments:?}: {err}");
        assert!(!err.contains("SECRET"), "{err}");
    }
}

#[tokio::test]
async fn a_wrong_command_line_is_told_from_a_failure() {
    for arguments in [
        vec![],
        vec!["status", "a", "b"],
        vec!["status", "-o", "xml"],
        vec!["status", "--node-deadline", "soon"],
    ] {
        let (code, out, err) = answer(&[], &arguments).await;
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
    }
    let (code, out, err) = answer(&[], &["--help"]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("See and mend the volumes of per-node") && out.contains("Exit codes:"), "{out}");
}

#[tokio::test]
async fn a_shell_can_complete_commands_and_flags() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, out, _) = answer(&[], &["completion", shell]).await;
        assert!(code == 0 && out.contains("node-deadline") && out.contains("status"), "{shell}: {out}");
    }
}
