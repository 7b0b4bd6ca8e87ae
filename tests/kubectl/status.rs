//! `status`.

use serde_json::json;

use crate::objects_api::ObjectsApi;
use crate::rights;
use crate::tool::run;

async fn cluster() -> ObjectsApi {
    let api = ObjectsApi::start().await;
    let volume = |name: &str, driver: &str, phase: &str| {
        let object = json!({
            "metadata": { "name": name },
            "spec": { "csi": { "driver": driver, "volumeHandle": format!("{name}-handle") },
                      "claimRef": { "namespace": "ci", "name": name } },
            "status": { "phase": phase },
        });
        api.put(&format!("/api/v1/persistentvolumes/{name}"), object);
    };
    volume("zeta", "per-node.liken.sh", "Bound");
    volume("alpha", "per-node.liken.sh", "Released");
    volume("other", "other.example", "Bound");
    api
}

#[tokio::test]
async fn the_drivers_volumes_are_listed_by_name_and_no_others() {
    let api = cluster().await;
    let answer = run(&api, &["status"]).await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert_eq!(
        answer.out,
        "VOLUME   HANDLE         PHASE      CLAIM\n\
         alpha    alpha-handle   Released   ci/alpha\n\
         zeta     zeta-handle    Bound      ci/zeta\n"
    );
}

#[tokio::test]
async fn each_right_is_needed_and_named_where_it_is_missing() {
    rights::check(&cluster().await, "status", &["status"]).await;
}
