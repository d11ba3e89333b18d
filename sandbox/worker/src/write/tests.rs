use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use crate::protocol::{ErrorCode, Observation, Response};
use crate::tests::{Bench, code, error, link, read};

fn created(response: &Response) -> bool {
    matches!(
        response,
        Response::Written {
            created: true,
            before_sha256: None,
            ..
        }
    )
}

#[test]
fn a_new_file_gets_its_directories_and_an_ordinary_mode() {
    let bench = Bench::new();
    let response = bench.write("a/b/c.txt", "x\n", vec![]);
    assert!(created(&response), "{response:?}");
    assert_eq!(bench.text("a/b/c.txt"), "x\n");
    let mode = bench.root().join("a/b/c.txt").metadata().unwrap().mode();
    assert_eq!(mode & 0o111, 0);
    assert_ne!(mode & 0o400, 0);
    let Response::Written { file, .. } = response else {
        panic!()
    };
    assert_eq!(
        (file.lines, file.seen),
        (1, vec![(1, 1)]),
        "the model knows what it wrote"
    );
}

#[test]
fn a_file_that_exists_must_have_been_seen_whole_as_it_is_now() {
    let bench = Bench::new();
    bench.put("f", "1\n2\n3\n");
    assert_eq!(code(&bench.write("f", "new", vec![])), ErrorCode::NotRead);

    let (partial, _) = bench.ask(&read("f", 1, 2), &[]);
    let Response::Read { file, .. } = partial else {
        panic!()
    };
    let partial = Observation {
        path: file.path,
        sha256: file.sha256,
        seen: file.seen,
    };
    let refused = bench.write("f", "new", vec![partial]);
    assert_eq!(code(&refused), ErrorCode::NotSeen);
    assert!(error(&refused).text.contains("line 3"), "{refused:?}");

    let (seen, _) = bench.read("f");
    std::fs::write(bench.root().join("f"), "1\n2\n4\n").unwrap();
    assert_eq!(code(&bench.write("f", "new", vec![seen])), ErrorCode::Stale);
    assert_eq!(bench.text("f"), "1\n2\n4\n");

    let (seen, _) = bench.read("f");
    assert!(!created(&bench.write("f", "new", vec![seen])));
    assert_eq!(bench.text("f"), "new");
    assert_eq!(bench.names(), ["f"], "nothing is left beside it");
}

#[test]
fn even_an_empty_file_must_have_been_read() {
    let bench = Bench::new();
    bench.put("f", "");
    assert_eq!(code(&bench.write("f", "x", vec![])), ErrorCode::NotRead);
    let (seen, _) = bench.read("f");
    assert!(!created(&bench.write("f", "x", vec![seen])));
}

#[test]
fn mode_is_kept_without_set_id_bits_and_links_to_the_inode_are_left_alone() {
    let bench = Bench::new();
    let path = bench.put("run.sh", "old\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4751)).unwrap();
    let store = bench.root().join("store");
    std::fs::hard_link(&path, &store).unwrap();
    let (seen, _) = bench.read("run.sh");
    bench.write("run.sh", "new\n", vec![seen]);
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o751);
    assert_eq!(std::fs::read_to_string(store).unwrap(), "old\n");
}

#[test]
fn a_link_stays_a_link_and_its_target_is_written() {
    let bench = Bench::new();
    bench.put("dir/target", "old\n");
    link("dir/target", bench.root().join("l"));
    let (seen, _) = bench.read("l");
    bench.write("l", "new\n", vec![seen]);
    assert!(
        bench
            .root()
            .join("l")
            .symlink_metadata()
            .unwrap()
            .is_symlink()
    );
    assert_eq!(bench.text("dir/target"), "new\n");

    link("dir/fresh", bench.root().join("dangling"));
    assert!(created(&bench.write("dangling", "x\n", vec![])));
    assert_eq!(bench.text("dir/fresh"), "x\n");
}

/// A file that even root may only read: the sysctl table knows no CAP_DAC_OVERRIDE.
#[test]
fn what_the_kernel_refuses_is_denied_with_its_errno() {
    let bench = Bench::new();
    let (seen, _) = bench.read("/proc/sys/kernel/ostype");
    let refused = bench.write("/proc/sys/kernel/ostype", "x", vec![seen.clone()]);
    assert_eq!(code(&refused), ErrorCode::Denied, "{refused:?}");
    assert!(matches!(error(&refused).errno, Some(1 | 13)), "{refused:?}");
    let refused = bench.edit("/proc/sys/kernel/ostype", "Linux", "x", vec![seen]);
    assert_eq!(code(&refused), ErrorCode::Denied, "{refused:?}");
}

#[test]
fn a_path_through_a_file_or_to_a_directory() {
    let bench = Bench::new();
    bench.put("f", "x");
    assert_eq!(
        code(&bench.write("f/g", "x", vec![])),
        ErrorCode::NotADirectory
    );
    assert_eq!(code(&bench.write(".", "x", vec![])), ErrorCode::NotAFile);
    assert_eq!(code(&bench.write("/", "x", vec![])), ErrorCode::NotAFile);
}

#[test]
fn content_of_several_frames_arrives_whole() {
    let bench = Bench::new();
    let content = "0123456789abcde\n".repeat(200_000);
    let response = bench.write("big", &content, vec![]);
    assert!(created(&response));
    assert_eq!(bench.text("big"), content);
}
