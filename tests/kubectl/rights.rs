//! The rights that docs/kubectl.md lists: each command uses these and no others, and where one is missing it is named.

use std::collections::BTreeSet;

use crate::objects_api::ObjectsApi;
use crate::rights_table::rights_of;
use crate::tool::run;

/// Verb and resource, as the table of docs/kubectl.md has them for `command`.
pub fn documented(command: &str) -> BTreeSet<(String, String)> {
    rights_of(command).into_iter().map(|right| (right.verb, right.resource)).collect()
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
