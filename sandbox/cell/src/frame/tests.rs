use std::io::Write;
use std::os::fd::AsFd;
use std::thread;

use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Message {
    Hello { name: String, bytes: u64 },
    Bye,
}

fn hello(bytes: u64) -> Message {
    Message::Hello {
        name: "x".into(),
        bytes,
    }
}

fn raw_peer() -> (UnixStream, Channel) {
    let (a, b) = UnixStream::pair().unwrap();
    (a, Channel::new(b, Rights::Refused))
}

#[test]
fn json_and_bulk_arrive_as_sent() {
    let (mut a, mut b) = Channel::pair(Rights::Refused).unwrap();
    let bulk: Vec<u8> = (0..3_000_000u32).map(|i| i as u8).collect();
    let sent = bulk.clone();
    let sender = thread::spawn(move || {
        a.send_json(&hello(sent.len() as u64), &[]).unwrap();
        a.send_bulk(&sent).unwrap();
        a.send_json(&Message::Bye, &[]).unwrap();
    });
    let (first, fds) = b.recv_json::<Message>().unwrap();
    assert_eq!(first, hello(3_000_000));
    assert!(fds.is_empty());
    assert_eq!(b.recv_bulk(3_000_000, 4_000_000).unwrap(), bulk);
    assert_eq!(b.recv_json::<Message>().unwrap().0, Message::Bye);
    sender.join().unwrap();
    assert!(matches!(b.recv_json::<Message>(), Err(FrameError::Closed)));
}

#[test]
fn the_wire_is_a_length_and_an_object_with_version_and_kind() {
    let (mut peer, mut channel) = raw_peer();
    channel.send_json(&Message::Bye, &[]).unwrap();
    drop(channel);
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut peer, &mut bytes).unwrap();
    assert_eq!(bytes, b"\x14\0\0\0{\"v\":1,\"kind\":\"bye\"}");
}

#[test]
fn descriptors_arrive_when_accepted_and_are_dropped_when_refused() {
    let (read, write) = std::io::pipe().unwrap();
    for (rights, expected) in [(Rights::Accepted, 1), (Rights::Refused, 0)] {
        let (a, b) = UnixStream::pair().unwrap();
        let mut a = Channel::new(a, Rights::Accepted);
        let mut b = Channel::new(b, rights);
        a.send_json(&Message::Bye, &[write.as_fd()]).unwrap();
        let (_, fds) = b.recv_json::<Message>().unwrap();
        assert_eq!(fds.len(), expected);
        if let Some(fd) = fds.into_iter().next() {
            std::fs::File::from(fd).write_all(b"through").unwrap();
            let mut got = [0; 7];
            std::io::Read::read_exact(&mut &read, &mut got).unwrap();
            assert_eq!(&got, b"through");
        }
    }
}

#[test]
fn two_frames_in_one_packet_keep_their_own_descriptors() {
    let (mut a, mut b) = Channel::pair(Rights::Accepted).unwrap();
    let (_read, write) = std::io::pipe().unwrap();
    a.send_json(&Message::Bye, &[]).unwrap();
    a.send_json(&Message::Bye, &[write.as_fd()]).unwrap();
    assert_eq!(b.recv_json::<Message>().unwrap().1.len(), 0);
    assert_eq!(b.recv_json::<Message>().unwrap().1.len(), 1);
}

#[test]
fn a_hostile_peer_gets_an_error_of_its_kind() {
    type Check = fn(&FrameError) -> bool;
    let cases: [(&[u8], Check); 7] = [
        (b"\xff\xff\xff\xff", |e| {
            matches!(e, FrameError::TooLarge { .. })
        }),
        (b"\x01\0", |e| matches!(e, FrameError::Cut)),
        (b"\x09\0\0\0{}", |e| matches!(e, FrameError::Cut)),
        (b"\x02\0\0\0{}", |e| matches!(e, FrameError::Json(_))),
        (b"\x14\0\0\0{\"v\":9,\"kind\":\"bye\"}", |e| {
            matches!(e, FrameError::Version { found: 9 })
        }),
        (b"\x14\0\0\0{\"v\":1,\"kind\":\"no!\"}", |e| {
            matches!(e, FrameError::Json(_))
        }),
        (b"", |e| matches!(e, FrameError::Closed)),
    ];
    for (bytes, check) in cases {
        let (mut peer, mut channel) = raw_peer();
        peer.write_all(bytes).unwrap();
        drop(peer);
        let error = channel.recv_json::<Message>().unwrap_err();
        assert!(check(&error), "{bytes:?} gave {error:?}");
    }
}

#[test]
fn bulk_must_be_what_was_announced() {
    let (mut peer, mut channel) = raw_peer();
    peer.write_all(b"\x03\0\0\0abc\x03\0\0\0def").unwrap();
    assert!(matches!(
        channel.recv_bulk(5, 100),
        Err(FrameError::BulkMismatch { bytes: 5 })
    ));
    assert!(matches!(
        channel.recv_bulk(101, 100),
        Err(FrameError::BulkTooLarge { .. })
    ));
    // An endless row of empty frames is not progress.
    let (mut peer, mut channel) = raw_peer();
    peer.write_all(&[0; 64]).unwrap();
    assert!(channel.recv_bulk(5, 100).is_err());
}

#[test]
fn an_oversized_frame_is_not_sent() {
    let (_peer, mut channel) = raw_peer();
    assert!(matches!(
        channel.send_raw(&vec![0; FRAME_BYTES_MAX + 1]),
        Err(FrameError::TooLarge { .. })
    ));
    let (_peer, mut channel) = raw_peer();
    assert!(matches!(
        channel.send_json(&7, &[]),
        Err(FrameError::NotAnObject)
    ));
}

#[test]
fn a_deadline_ends_a_receive_from_a_silent_and_from_a_dripping_peer() {
    let (mut peer, mut channel) = raw_peer();
    channel.set_deadline(Some(Instant::now() + Duration::from_millis(30)));
    assert!(matches!(
        channel.recv_json::<Message>(),
        Err(FrameError::Timeout)
    ));
    peer.write_all(b"\x40\0\0\0{").unwrap();
    channel.set_deadline(Some(Instant::now() + Duration::from_millis(30)));
    assert!(matches!(
        channel.recv_json::<Message>(),
        Err(FrameError::Timeout)
    ));
}

#[test]
fn a_peer_that_is_gone_is_closed_and_not_a_signal() {
    let (peer, mut channel) = raw_peer();
    drop(peer);
    assert!(matches!(
        channel.send_json(&Message::Bye, &[]),
        Err(FrameError::Closed)
    ));
}
