//! The rights that docs/kubectl.md lists: each command uses these and no others, and where one is missing it is named.

use std::collections::BTreeSet;

use crate::objects_api::ObjectsApi;
use crate::tool::run;

/// Verb and resource, as the table of docs/kubectl.md has them for `command`.
pub fn documented(command: &str) -> BTreeSet<(String, String)> {
    let docs =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/kubectl.md")).expect("docs");
    let (_, table) = docs.split_once("\n## Rights\n").expect("the section");
    let rows = table.lines().skip_while(|line| !line.starts_with("| ---")).skip(1);
    let mut rights = BTreeSet::new();
    for row in rows.take_while(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let words =
            |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
        if words(cells[3]).iter().any(|name| name == command) {
            let pairs = words(cells[0]).into_iter().map(|verb| (verb, words(cells[1])[0].clone()));
            rights.extend(pairs);
        }
    }
    assert!(!rights.is_empty(), "no rights of {command} in docs/kubectl.md");
    rights
}

/// Holds `arguments` of `command` to the table: these rights are used and no others, and each one that is denied is named.
pub async fn check(api: &ObjectsApi, command: &str, arguments: &[&str]) {
    let documented = documented(command);
    api.take_used();
    run(api, arguments).await;
    assert_eq!(api.take_used(), documented, "{command}: what it uses, and what docs/kubectl.md says");
    for (verb, resource) in &documented {
        api.deny(&[(verb, resource)]);
        let answer = run(api, arguments).await;
        api.deny(&[]);
        assert_ne!(answer.code, 0, "{verb} {resource} denied");
        let named = answer.err.contains(&format!("{verb} {resource}"));
        assert!(named, "{verb} {resource} denied: {}", answer.err);
    }
}
