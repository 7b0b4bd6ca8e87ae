//! The handle (C3): one that breaks a rule is refused with an event that names the rule.

use crate::case::run;
use crate::manifest;
use crate::wait::wait_until;

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c03_a_handle_that_breaks_a_rule_is_refused_with_its_event() {
    run("c03-handles", |case| {
        let node = &case.cluster.first;
        let long = "a".repeat(254);
        let handles = [
            "Upper",
            "under_score",
            "-first",
            "last-",
            ".first",
            "last.",
            "two..dots",
            "a.-b",
            "a/b",
            "..",
            "é",
            "a b",
            &long,
        ];
        for (number, handle) in handles.iter().enumerate() {
            let claim = format!("claim-{number}");
            case.apply(&manifest::volume(
                &format!("{}-{number}", case.name),
                handle,
                "ReadWriteMany",
                &case.name,
                &claim,
            ));
            case.apply(&manifest::claim(&claim, "ReadWriteMany"));
            case.apply(&manifest::pod(&format!("pod-{number}"), Some(node.name), &claim, "true"));
        }

        let mut messages = Vec::new();
        for (number, handle) in handles.iter().enumerate() {
            let message = case.wait_event(&format!("pod-{number}"), "PerNodeVolumeRefused");
            println!("{handle:.20}: {message}");
            assert!(message.len() < 1024 && !message.contains('\n'), "{message}");
            messages.push(message);
        }
        // Nothing ran and nothing was made, in the store or beside it.
        for number in 0..handles.len() {
            let pod = case.pod(&format!("pod-{number}")).expect("the pod");
            assert_eq!(pod["status"]["phase"], "Pending");
        }
        let copies = std::fs::read_dir(node.store().join("copies")).expect("the copies");
        for copy in copies {
            let name = copy.expect("an entry").file_name().to_string_lossy().into_owned();
            assert!(!handles.contains(&name.as_str()), "{name} was made");
        }
        // The kubelet's event carries the driver's answer as well.
        wait_until("the kubelet's event", || {
            case.events("pod-0", "FailedMount").iter().any(|event| {
                event["message"].as_str().is_some_and(|message| message.contains("InvalidArgument"))
            })
        });
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c03_the_longest_handle_is_served() {
    run("c03-longest", |case| {
        let node = &case.cluster.first;
        let start = case.handle("");
        // 253 characters in segments, as a DNS name may be; the volume's own name stays short.
        let handle = format!("{}x.{}.{}", start, "b".repeat(120), "c".repeat(253 - start.len() - 123));
        assert_eq!(handle.len(), 253);
        case.apply(&manifest::volume(
            &format!("{}-v", case.name),
            &handle,
            "ReadWriteMany",
            &case.name,
            "claim",
        ));
        case.apply(&manifest::claim("claim", "ReadWriteMany"));
        case.running_pod("pod", node, "claim", "echo here > /data/file");
        wait_until("the file", || node.read(&handle, "file").is_some());
        case.delete("pod", "pod");
        case.delete("pvc", "claim");
        case.delete("pv", &format!("{}-v", case.name));
        wait_until("its copy to go", || !node.copy(&handle).exists());
    });
}
