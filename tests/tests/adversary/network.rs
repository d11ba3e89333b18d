//! Reaching the host's services, judged by the services.

use super::{Act, Scene, Twin, row};

fn reached(scene: &Scene) -> bool {
    scene.listeners.reached()
}

#[test]
fn ne01_direct_connections() {
    row(&[
        Act::new(
            "the shell's own",
            "bash -c 'echo x > /dev/tcp/127.0.0.1/{tcp}'",
            reached,
        )
        .unreported(super::OWN_LOOPBACK),
        Act::new(
            "curl past proxies",
            "curl -s -m 5 --noproxy '*' http://127.0.0.1:{tcp}/ & sleep 0.3; kill $!",
            reached,
        )
        .unreported(super::OWN_LOOPBACK),
        Act::new("IPv4", "{probe} connect 127.0.0.1 {tcp}", reached)
            .unreported(super::OWN_LOOPBACK),
        Act::new(
            "IPv4 in IPv6",
            "{probe} connect ::ffff:127.0.0.1 {tcp}",
            reached,
        )
        .unreported(super::OWN_LOOPBACK),
    ]);
}

#[test]
fn ne02_datagrams() {
    row(&[
        Act::new("sendto", "{probe} datagram 127.0.0.1 {udp}", reached)
            .unreported(super::OWN_LOOPBACK),
        Act::new("sendmmsg", "{probe} sendmmsg 127.0.0.1 {udp}", reached)
            .unreported(super::OWN_LOOPBACK),
        Act::new(
            "IPv4 in IPv6",
            "{probe} datagram ::ffff:127.0.0.1 {udp}",
            reached,
        )
        .unreported(super::OWN_LOOPBACK),
    ]);
}

#[test]
fn ne07_abstract_sockets() {
    row(&[Act::new("stream", "{probe} unix {abstract}", reached)]);
}

#[test]
fn ne08_sockets_by_path() {
    row(&[
        Act::new("stream", "{probe} unix {unix}", reached),
        Act::new(
            "datagram without connect",
            "{probe} unix-datagram {datagram}",
            reached,
        ),
    ]);
}

#[test]
fn ne12_services_on_loopback() {
    row(&[
        Act::new("127.0.0.1", "{probe} connect 127.0.0.1 {any}", reached)
            .unreported(super::OWN_LOOPBACK),
        Act::new("0.0.0.0", "{probe} connect 0.0.0.0 {any}", reached)
            .unreported(super::OWN_LOOPBACK),
        Act::new(
            "another loopback name",
            "{probe} connect localhost {any}",
            reached,
        )
        .unreported(super::OWN_LOOPBACK),
    ]);
    if curfew_tests::net::Listeners::open(
        curfew_tests::world::World::new(curfew_tests::world::own_uid()).path(),
    )
    .has_v6()
    {
        row(&[
            Act::new("::1", "{probe} connect ::1 {tcp6}", reached).unreported(super::OWN_LOOPBACK)
        ]);
    } else {
        curfew_tests::skip::note("ne12-ipv6", "this host has no ::1");
    }
}

#[test]
fn ne03_ne10_socket_families() {
    row(&[
        Act::new("raw", "{probe} sockets raw packet", Scene::did_any).twin(Twin::RootOnly),
        Act::new("others", "{probe} sockets alg vsock", Scene::did_any),
        Act::new(
            "netlink beyond routes",
            "{probe} sockets nflog uevent audit",
            Scene::did_any,
        ),
    ]);
    row(&[
        Act::new("the ordinary one", "{probe} sockets inet", Scene::did_any)
            .expect([super::Holds; 3]),
    ]);
}
