//! `release`.

use serde_json::{Value, json};

use crate::objects_api::ObjectsApi;
use crate::rights;
use crate::tool::run;

const VOLUME: &str = "/api/v1/persistentvolumes/cache";
const CLAIM: &str = "/api/v1/namespaces/ci/persistentvolumeclaims/cache";

async fn cluster() -> ObjectsApi {
    let api = ObjectsApi::start().await;
    api.put(
        VOLUME,
        json!({
            "metadata": {"name": "cache", "uid": "pv", "resourceVersion": "7"},
            "spec": {
                "csi": {"driver": "per-node.liken.sh", "volumeHandle": "cache"},
                "claimRef": {"namespace": "ci", "name": "cache", "uid": "gone", "resourceVersion": "3"},
            },
            "status": {"phase": "Released"},
        }),
    );
    api
}

fn claim_ref(api: &ObjectsApi) -> Value {
    api.object(VOLUME).expect("the volume")["spec"]["claimRef"].clone()
}

#[tokio::test]
async fn c20_a_released_volume_is_bindable_by_a_claim_of_the_same_name_and_by_no_other() {
    let api = cluster().await;
    let answer = run(&api, &["release", "cache", "--yes"]).await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(
        answer.out.contains("\"uid\": null") && answer.out.contains("UID gone is gone"),
        "{}",
        answer.out
    );
    assert!(answer.out.ends_with("released: the claim ci/cache binds once it is made\n"), "{}", answer.out);
    assert_eq!(claim_ref(&api), json!({"namespace": "ci", "name": "cache"}));
}

#[tokio::test]
async fn without_a_yes_the_patch_is_shown_and_nothing_is_done() {
    let api = cluster().await;
    let answer = run(&api, &["release", "cache"]).await;
    assert_eq!(answer.code, 5);
    assert!(answer.out.contains("\"claimRef\"") && answer.err.contains("--yes"), "{answer:?}");
    assert_eq!(claim_ref(&api)["uid"], "gone");
}

#[tokio::test]
async fn c20_a_volume_that_a_claim_has_stays_as_it_is() {
    let api = cluster().await;
    api.put(CLAIM, json!({"metadata": {"namespace": "ci", "name": "cache", "uid": "gone"}, "status": {"phase": "Bound"}}));
    let answer = run(&api, &["release", "cache", "--yes"]).await;
    assert_eq!((answer.code, answer.out.as_str()), (5, ""));
    assert!(answer.err.contains("the claim ci/cache still has it (Bound)"), "{}", answer.err);
    assert_eq!(claim_ref(&api)["uid"], "gone");
    // The same claim made anew is another.
    api.put(CLAIM, json!({"metadata": {"namespace": "ci", "name": "cache", "uid": "new"}, "status": {"phase": "Pending"}}));
    let answer = run(&api, &["release", "cache", "-y"]).await;
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert!(answer.out.ends_with("the claim ci/cache binds now\n"), "{}", answer.out);
}

#[tokio::test]
async fn a_volume_that_changes_before_the_patch_arrives_is_not_patched() {
    let api = cluster().await;
    api.race_next_patch();
    let answer = run(&api, &["release", "cache", "--yes"]).await;
    assert_eq!(answer.code, 5);
    assert!(answer.err.contains("changed meanwhile, and nothing was done"), "{}", answer.err);
    assert_eq!(claim_ref(&api)["uid"], "gone");
}

#[tokio::test]
async fn a_volume_that_is_not_there_is_said() {
    let answer = run(&cluster().await, &["release", "other", "--yes"]).await;
    assert_eq!(
        (answer.code, answer.err.as_str()),
        (1, "kubectl per-node: PersistentVolume other not found\n")
    );
}

#[tokio::test]
async fn each_right_is_needed_and_named_where_it_is_missing() {
    rights::check(&cluster().await, "release", &["release", "cache", "--yes"]).await;
}
