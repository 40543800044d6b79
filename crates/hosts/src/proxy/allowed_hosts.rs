//! Which hosts an agent may reach.

use super::target::{HostName, Target};

const USUAL_PORT: u16 = 443;

/// Which hosts an agent may reach. None at first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedHosts(Vec<Entry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    which: Which,
    port: u16,
    where_it_is: Network,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Which {
    Host(HostName),
    /// All hosts whose name ends so, with the dot before it.
    Below(String),
}

/// Where a host may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    /// On the internet: a name must not lead to this machine or to a network around it.
    Internet,
    Anywhere,
}

impl AllowedHosts {
    /// No host at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// And a host of the internet: `api.example.com`, `*.example.com` for all below it, or
    /// `api.example.com:8443`; without a port it is 443. What is an address may be any address.
    ///
    /// # Errors
    /// With a sentence, if that is no host.
    pub fn host(self, entry: &str) -> Result<Self, String> {
        let below = entry.strip_prefix("*.");
        let target = Target::parse(below.unwrap_or(entry), Some(USUAL_PORT));
        let target = target.ok_or_else(|| format!("{entry:?} is not a host"))?;
        let which = match (below, target.host) {
            (Some(_), HostName::Name(name)) => Which::Below(format!(".{name}")),
            (Some(_), HostName::Address(_)) => {
                return Err(format!(
                    "{entry:?} is not a host: nothing is below an address"
                ));
            }
            (None, host) => Which::Host(host),
        };
        let where_it_is = match &which {
            Which::Host(HostName::Address(_)) => Network::Anywhere,
            Which::Host(HostName::Name(_)) | Which::Below(_) => Network::Internet,
        };
        Ok(self.and(Entry {
            which,
            port: target.port,
            where_it_is,
        }))
    }

    /// And a server that the user's own settings name, which may be on this machine or in a network
    /// around it: `http://127.0.0.1:8080/v1`, `https://models.intern`, `localhost:8080`.
    ///
    /// # Errors
    /// With a sentence, if that is no server.
    pub fn own_server(self, address: &str) -> Result<Self, String> {
        let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
        let usual = match scheme.to_ascii_lowercase().as_str() {
            "" => None,
            "http" | "ws" => Some(80),
            "https" | "wss" => Some(USUAL_PORT),
            _ => return Err(format!("{address:?} is not the address of a server")),
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        // A password in an address is for the server.
        let server = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        let target = Target::parse(server, usual);
        let target = target.ok_or_else(|| format!("{address:?} is not the address of a server"))?;
        Ok(self.and(Entry {
            which: Which::Host(target.host),
            port: target.port,
            where_it_is: Network::Anywhere,
        }))
    }

    fn and(mut self, entry: Entry) -> Self {
        self.0.push(entry);
        self
    }

    /// Where this server may be, if it may be reached.
    pub(super) fn find(&self, target: &Target) -> Option<Network> {
        let found = self.0.iter().filter(|entry| entry.is_for(target));
        let found: Vec<Network> = found.map(|entry| entry.where_it_is).collect();
        // The user's own word for a server counts also where a list names it.
        let anywhere = found.iter().find(|at| **at == Network::Anywhere);
        anywhere.or(found.first()).copied()
    }
}

impl Entry {
    fn is_for(&self, target: &Target) -> bool {
        let is_host = match (&self.which, &target.host) {
            (Which::Host(host), asked) => host == asked,
            (Which::Below(end), HostName::Name(name)) => name.ends_with(end),
            (Which::Below(_), HostName::Address(_)) => false,
        };
        is_host && self.port == target.port
    }
}

#[cfg(test)]
mod tests {
    use super::{AllowedHosts, Network, Target};

    fn allowed() -> Result<AllowedHosts, String> {
        AllowedHosts::new()
            .host("api.example.com")?
            .host("*.models.example")?
            .host("other.example:8443")?
            .host("192.0.2.1")?
            .own_server("http://127.0.0.1:8080/v1")?
            .own_server("https://user:secret@models.intern/a@b")?
            .own_server("localhost:1234")
    }

    #[test]
    fn only_what_is_named_is_allowed() {
        let allowed = allowed().expect("hosts");
        use Network::{Anywhere, Internet};
        for (server, found) in [
            ("api.example.com:443", Some(Internet)),
            ("API.example.com.:443", Some(Internet)),
            ("api.example.com:80", None),
            ("example.com:443", None),
            ("api.example.com.evil.com:443", None),
            ("notapi.example.com:443", None),
            ("a.models.example:443", Some(Internet)),
            ("a.b.models.example:443", Some(Internet)),
            ("models.example:443", None),
            ("evilmodels.example:443", None),
            ("a.models.example.evil.com:443", None),
            ("other.example:8443", Some(Internet)),
            ("other.example:443", None),
            ("192.0.2.1:443", Some(Anywhere)),
            ("192.0.2.2:443", None),
            ("127.0.0.1:8080", Some(Anywhere)),
            ("[::ffff:127.0.0.1]:8080", Some(Anywhere)),
            ("localhost:8080", None),
            ("127.0.0.1:8081", None),
            ("127.0.0.2:8080", None),
            ("models.intern:443", Some(Anywhere)),
            ("localhost:1234", Some(Anywhere)),
        ] {
            let target = Target::parse(server, None).expect(server);
            assert_eq!(allowed.find(&target), found, "{server}");
        }
    }

    #[test]
    fn what_is_no_host_is_a_sentence() {
        for entry in ["*.127.0.0.1", "*", "a b", "", "http://a", "*.com:x"] {
            assert!(AllowedHosts::new().host(entry).is_err(), "{entry}");
        }
        for address in ["ftp://a", "http://", "host", "http://a b/", "file:///etc"] {
            assert!(
                AllowedHosts::new().own_server(address).is_err(),
                "{address}"
            );
        }
    }
}
