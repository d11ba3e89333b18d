use std::path::PathBuf;

use super::*;

fn fault(step: &str, errno: i32) -> SetupFault {
    SetupFault {
        step: step.to_owned(),
        path: Some(PathBuf::from("/p")),
        errno,
        text: "no".to_owned(),
    }
}

fn first(step: &str, errno: i32, hints: HostHints) -> String {
    explain_with(&fault(step, errno), &hints).remedies.remove(0)
}

#[test]
fn each_known_host_gets_its_own_fix_first() {
    let ubuntu = HostHints {
        apparmor_restricts: true,
        ..HostHints::default()
    };
    assert!(first("uid_map", EACCES, ubuntu).contains("AppArmor"));
    let debian = HostHints {
        userns_clone_off: true,
        ..HostHints::default()
    };
    assert!(first("unshare user", EPERM, debian).contains("unprivileged_userns_clone"));
    let none_left = HostHints {
        no_namespaces_left: true,
        ..HostHints::default()
    };
    assert!(first("unshare user", ENOSPC, none_left).contains("max_user_namespaces"));
    let docker = HostHints {
        container: true,
        ..HostHints::default()
    };
    assert!(first("unshare user", EPERM, docker.clone()).contains("--security-opt"));
    assert!(first("mount proc", EPERM, docker).contains("--security-opt"));
    let microvm = HostHints {
        modules: Some("capability,yama".to_owned()),
        ..HostHints::default()
    };
    assert!(first("landlock", EOPNOTSUPP, microvm).contains("lsm="));
}

#[test]
fn every_fault_has_a_reason_with_its_place_and_some_remedy() {
    for step in [
        "unshare",
        "seal",
        "landlock",
        "seccomp",
        "grab",
        "something new",
    ] {
        let explanation = explain_with(&fault(step, EPERM), &HostHints::default());
        assert!(
            explanation.reason.contains(step) && explanation.reason.contains("/p"),
            "{explanation:?}"
        );
        assert!(!explanation.remedies.is_empty());
    }
}
