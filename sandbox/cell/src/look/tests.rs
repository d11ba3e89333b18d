use super::*;

fn inet(address: [u8; 4], port: u16) -> Vec<u8> {
    let mut bytes = (libc::AF_INET as u16).to_ne_bytes().to_vec();
    bytes.extend(port.to_be_bytes());
    bytes.extend(address);
    bytes.extend([0; 8]);
    bytes
}

fn inet6(address: Ipv6Addr, port: u16) -> Vec<u8> {
    let mut bytes = (libc::AF_INET6 as u16).to_ne_bytes().to_vec();
    bytes.extend(port.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(address.octets());
    bytes.extend([0; 4]);
    bytes
}

#[test]
fn addresses_outside_are_named_and_loopback_is_not() {
    let named = |bytes: &[u8]| outside_address(bytes);
    assert_eq!(named(&inet([8, 8, 8, 8], 53)), Some("8.8.8.8:53".into()));
    assert_eq!(named(&inet([127, 0, 0, 1], 80)), None);
    assert_eq!(named(&inet([0, 0, 0, 0], 80)), None);
    let public = "2001:db8::1".parse().unwrap();
    assert_eq!(named(&inet6(public, 443)), Some("[2001:db8::1]:443".into()));
    assert_eq!(named(&inet6(Ipv6Addr::LOCALHOST, 443)), None);
    let mapped = "::ffff:127.0.0.1".parse().unwrap();
    assert_eq!(named(&inet6(mapped, 443)), None);
    for cut in 0..8 {
        assert_eq!(named(&inet([8, 8, 8, 8], 53)[..cut]), None);
    }
}

#[test]
fn text_is_read_up_to_its_end_and_not_beyond_the_longest_path() {
    let own = std::process::id() as i32;
    for length in [0, 1, 255, 256, 257, 4000] {
        let mut text = vec![b'a'; length];
        text.push(0);
        let read = read_text(own, text.as_ptr() as u64).unwrap();
        assert_eq!(read.len(), length);
    }
    let endless = vec![b'a'; 3 * PATH_BYTES_MAX];
    assert_eq!(read_text(own, endless.as_ptr() as u64), None);
    assert_eq!(read_text(own, 8), None);
}

/// /proc is a tree where everything counts as read-only.
#[test]
fn what_exists_or_is_missing_is_not_refused() {
    let lookout = Lookout::new(NetPlan::Empty).unwrap();
    for op in ["mkdir", "mknod", "symlink", "link"] {
        assert_eq!(lookout.name(op, Path::new("/proc/self")), None, "{op}");
        let made = lookout.name(op, Path::new("/proc/none"));
        assert_eq!(made.map(|denial| denial.errno), Some(libc::EROFS), "{op}");
    }
    for op in ["chmod", "chown", "utime", "setxattr", "truncate"] {
        assert_eq!(lookout.change(op, Path::new("/proc/none")), None, "{op}");
        let changed = lookout.change(op, Path::new("/proc/version"));
        assert!(changed.is_some(), "{op}");
    }
    assert!(
        lookout
            .change("open-write", Path::new("/proc/none"))
            .is_some()
    );
    assert!(lookout.name("unlink", Path::new("/proc/version")).is_some());
}
