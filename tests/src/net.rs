//! Listeners of the host that no call may reach. The kernel's queues remember who came: nothing
//! has to run here while a call does.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;

pub struct Listeners {
    v4: TcpListener,
    v6: Option<TcpListener>,
    any: TcpListener,
    udp: UdpSocket,
    unix: UnixListener,
    datagram: UnixDatagram,
    abstract_name: String,
    abstract_unix: UnixListener,
    folder: std::path::PathBuf,
}

impl Listeners {
    pub fn open(folder: &Path) -> Self {
        let (path, datagrams) = (folder.join("s.sock"), folder.join("d.sock"));
        let unix = UnixListener::bind(&path).unwrap();
        let datagram = UnixDatagram::bind(&datagrams).unwrap();
        for socket in [&path, &datagrams] {
            std::fs::set_permissions(socket, PermissionsExt::from_mode(0o777)).unwrap();
        }
        let abstract_name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let listeners = Listeners {
            v4: TcpListener::bind("127.0.0.1:0").unwrap(),
            v6: TcpListener::bind("[::1]:0").ok(),
            any: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            unix,
            datagram,
            abstract_unix: UnixListener::bind_addr(&address).unwrap(),
            abstract_name,
            folder: folder.to_path_buf(),
        };
        listeners.unblock();
        listeners
    }

    fn unblock(&self) {
        for listener in [Some(&self.v4), self.v6.as_ref(), Some(&self.any)]
            .into_iter()
            .flatten()
        {
            listener.set_nonblocking(true).unwrap();
        }
        self.udp.set_nonblocking(true).unwrap();
        self.unix.set_nonblocking(true).unwrap();
        self.datagram.set_nonblocking(true).unwrap();
        self.abstract_unix.set_nonblocking(true).unwrap();
    }

    pub fn has_v6(&self) -> bool {
        self.v6.is_some()
    }

    /// Puts this host's addresses into a script.
    pub fn fill(&self, script: &str) -> String {
        let port = |address: std::io::Result<SocketAddr>| address.unwrap().port().to_string();
        let v6 = self
            .v6
            .as_ref()
            .map_or("9".to_owned(), |listener| port(listener.local_addr()));
        script
            .replace("{tcp}", &port(self.v4.local_addr()))
            .replace("{tcp6}", &v6)
            .replace("{any}", &port(self.any.local_addr()))
            .replace("{udp}", &port(self.udp.local_addr()))
            .replace("{unix}", self.folder.join("s.sock").to_str().unwrap())
            .replace("{datagram}", self.folder.join("d.sock").to_str().unwrap())
            .replace("{abstract}", &format!("@{}", self.abstract_name))
    }

    /// Whether anything reached any of them.
    pub fn reached(&self) -> bool {
        let mut buffer = [0; 16];
        let tcp = [Some(&self.v4), self.v6.as_ref(), Some(&self.any)];
        let seen = [
            tcp.into_iter()
                .flatten()
                .any(|listener| came(listener.accept())),
            came(self.udp.recv_from(&mut buffer)),
            came(self.unix.accept()),
            came(self.datagram.recv_from(&mut buffer)),
            came(self.abstract_unix.accept()),
        ];
        seen.contains(&true)
    }
}

fn came<T>(result: std::io::Result<T>) -> bool {
    match result {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) => panic!("a listener of this test: {error}"),
    }
}
