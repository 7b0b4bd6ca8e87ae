//! `manifest`.

use serde_json::Value;

use crate::objects_api::ObjectsApi;
use crate::tool::run;

#[tokio::test]
async fn c02_the_objects_are_printed_for_kubectl_apply_and_nobody_is_asked() {
    let api = ObjectsApi::start().await;
    let answer = run(&api, &["manifest", "cache", "--size", "20Gi", "--deployment"]).await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let objects: Vec<Value> = serde_saphyr::from_multiple(&answer.out).expect("YAML");
    let kinds: Vec<_> = objects.iter().map(|object| object["kind"].as_str().unwrap_or_default()).collect();
    assert_eq!(kinds, ["PersistentVolume", "PersistentVolumeClaim", "Deployment"]);
    // The context's namespace, as kubectl apply would use it.
    assert_eq!(objects[0]["spec"]["claimRef"]["namespace"], "default");
    assert_eq!(objects[1]["metadata"]["namespace"], "default");
    assert!(api.take_used().is_empty());
    let elsewhere = run(&api, &["manifest", "cache", "--size=20Gi", "-n", "ci", "--mode=rwop"]).await;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&elsewhere.out).expect("YAML");
    assert_eq!((objects.len(), &objects[1]["metadata"]["namespace"]), (2, &"ci".into()));
    assert_eq!(objects[1]["spec"]["accessModes"][0], "ReadWriteOncePod");
}

#[tokio::test]
async fn c03_what_breaks_a_rule_is_no_manifest_and_the_rule_is_named() {
    let api = ObjectsApi::start().await;
    for (arguments, rule) in [
        (&["manifest", "Cache", "--size=1Gi"][..], "lower-case letters"),
        (&["manifest", "cache", "--size=1GB"], "as 20Gi"),
        (&["manifest", "cache", "--size=1Gi", "-n", "A"], "DNS-1123 label"),
        (&["manifest", "cache", "--size=1Gi", "--mode=rwop", "--daemonset"], "one pod in the whole cluster"),
        (&["manifest", "cache", "--size=1Gi", "--deployment", "--daemonset"], "cannot be used with"),
        (&["manifest", "cache"], "--size"),
    ] {
        let answer = run(&api, arguments).await;
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{arguments:?}");
        assert!(answer.err.contains(rule), "{}", answer.err);
    }
}
