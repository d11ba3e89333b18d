use std::fs;
use std::io::Read;

use curfew_store::{BLOB_BYTES_MAX, BLOB_PAGE_BYTES_MAX, StoreError};

use crate::support::*;

#[test]
fn a_blob_is_read_by_page_and_named_by_its_bytes() {
    let place = Place::new();
    let writer = place.store.create(&header("blobs"), silent()).unwrap();
    let bytes: Vec<u8> = (0..3_000_000_u32).flat_map(|n| n.to_le_bytes()).collect();
    let blob = writer.blobs().put(&mut bytes.as_slice()).unwrap();
    assert_eq!((blob.bytes, blob.cut), (bytes.len() as u64, false));
    drop(writer);

    let blobs = place.store.blobs("blobs").unwrap();
    let mut read = Vec::new();
    loop {
        let page = blobs
            .read(&blob.sha256, read.len() as u64, usize::MAX)
            .unwrap();
        assert!(page.len() <= BLOB_PAGE_BYTES_MAX);
        if page.is_empty() {
            break;
        }
        read.extend(page);
    }
    assert!(read == bytes);
    assert_eq!(blobs.read(&blob.sha256, 4, 4).unwrap(), [1, 0, 0, 0]);
    assert_eq!(blobs.size(&blob.sha256).unwrap(), blob.bytes);
    assert!(
        blobs.read(&blob.sha256, u64::MAX, 10).is_err()
            || blobs.read(&blob.sha256, u64::MAX, 10).unwrap().is_empty()
    );
    blobs.verify(&blob.sha256).unwrap();
    // sha256sum says the same.
    let path = place.session("blobs").join("blobs").join(&blob.sha256);
    let sum = std::process::Command::new("sha256sum")
        .arg(&path)
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&sum.stdout).starts_with(&blob.sha256));
}

#[test]
fn the_same_bytes_are_kept_once_and_a_changed_file_is_found() {
    let place = Place::new();
    let writer = place.store.create(&header("same"), silent()).unwrap();
    let first = writer.blobs().put_bytes(b"twice").unwrap();
    assert_eq!(writer.blobs().put_bytes(b"twice").unwrap(), first);
    let dir = place.session("same").join("blobs");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
    fs::write(dir.join(&first.sha256), b"other").unwrap();
    assert!(matches!(
        writer.blobs().verify(&first.sha256),
        Err(StoreError::BlobDamaged { .. })
    ));
    assert!(matches!(
        writer.blobs().put_bytes(b"twice"),
        Err(StoreError::BlobDamaged { .. })
    ));
}

#[test]
fn a_long_source_is_cut_and_says_so() {
    let place = Place::new();
    let writer = place.store.create(&header("long"), silent()).unwrap();
    let whole = writer
        .blobs()
        .put(&mut std::io::repeat(7).take(BLOB_BYTES_MAX))
        .unwrap();
    assert_eq!((whole.bytes, whole.cut), (BLOB_BYTES_MAX, false));
    let cut = writer
        .blobs()
        .put(&mut std::io::repeat(7).take(BLOB_BYTES_MAX + 1))
        .unwrap();
    assert_eq!(
        (cut.bytes, cut.cut, &cut.sha256),
        (BLOB_BYTES_MAX, true, &whole.sha256)
    );
}

#[test]
fn a_source_that_fails_leaves_nothing() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("pipe burst"))
        }
    }
    let place = Place::new();
    let writer = place.store.create(&header("burst"), silent()).unwrap();
    let error = writer
        .blobs()
        .put(&mut std::io::repeat(1).take(100_000).chain(Broken))
        .err()
        .unwrap();
    assert!(error.to_string().contains("pipe burst"), "{error}");
    assert_eq!(
        fs::read_dir(place.session("burst").join("blobs"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn only_a_hash_names_a_blob() {
    let place = Place::new();
    let writer = place.store.create(&header("names"), silent()).unwrap();
    writer.blobs().put_bytes(b"x").unwrap();
    let upper = "A".repeat(64);
    let missing = "0".repeat(64);
    for name in ["", "../log.jsonl", "log.jsonl", &upper, &missing] {
        assert!(
            matches!(
                writer.blobs().read(name, 0, 10),
                Err(StoreError::NoBlob { .. })
            ),
            "{name}"
        );
    }
}
