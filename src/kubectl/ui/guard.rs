//! Who may have an answer: judged of every request before anything else is done with it.
//!
//! Anybody on this machine can connect to a port on 127.0.0.1, and any web page can make this machine's browser do so. So
//! the token in the path decides, and the name in `Host` must be this machine's: a page whose own name was made to point here
//! (DNS rebinding) would otherwise be of the same origin. Nothing is ever changed, so two methods are enough.

use axum::http::{HeaderMap, Method, Uri, header};

use super::token::Token;

/// The names of this machine that a browser takes from no DNS server. The port is not compared: ssh may have forwarded it.
const OWN_NAMES: [&str; 2] = ["127.0.0.1", "localhost"];

/// What an admitted request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The page.
    Page,
    /// The latest look at the cluster, later than the one of this number.
    State { after: u64 },
}

/// Why a request has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("ask for it as 127.0.0.1 or localhost")]
    Host,
    #[error("only GET and HEAD: nothing can be changed here")]
    Method,
    /// A wrong token and a wrong page are not told apart.
    #[error("nothing is here: open the whole address that kubectl per-node ui has printed")]
    Path,
}

/// Judges a request by everything but its body, which is never read.
pub fn judge(token: &Token, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Wanted, Refused> {
    if !is_own_name(headers) {
        return Err(Refused::Host);
    }
    if method != Method::GET && method != Method::HEAD {
        return Err(Refused::Method);
    }
    let (told, page) = uri.path().strip_prefix('/').and_then(|path| path.split_once('/')).unwrap_or_default();
    if !token.fits(told) {
        return Err(Refused::Path);
    }
    match page {
        "" => Ok(Wanted::Page),
        "state" => Ok(Wanted::State { after: after(uri.query().unwrap_or_default()) }),
        _ => Err(Refused::Path),
    }
}

/// Exactly one `Host`, with a name of this machine.
fn is_own_name(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let Ok(host) = host.to_str() else { return false };
    let (name, port) = host.split_once(':').unwrap_or((host, "80"));
    OWN_NAMES.iter().any(|own| name.eq_ignore_ascii_case(own)) && port.parse::<u16>().is_ok()
}

/// The number of the look that the page has; zero where it has none.
fn after(query: &str) -> u64 {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| *name == "after").find_map(|(_, value)| value.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(token: &Token, method: &str, uri: &str, hosts: &[&str]) -> Result<Wanted, Refused> {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, host.parse().expect("a header"));
        }
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        judge(token, &method, &uri.parse().expect("a URI"), &headers)
    }

    #[test]
    fn with_the_token_both_pages_are_there() {
        let token = Token::random().expect("random");
        let at = |page: &str| format!("/{}/{page}", token.reveal());
        for host in ["127.0.0.1:8400", "127.0.0.1", "localhost:1", "LOCALHOST:80"] {
            assert_eq!(asked(&token, "GET", &at(""), &[host]), Ok(Wanted::Page), "{host}");
        }
        let own = ["127.0.0.1:8400"];
        assert_eq!(asked(&token, "HEAD", &at("state"), &own), Ok(Wanted::State { after: 0 }));
        assert_eq!(asked(&token, "GET", &at("state?after=7"), &own), Ok(Wanted::State { after: 7 }));
        assert_eq!(asked(&token, "GET", &at("state?after=x&b"), &own), Ok(Wanted::State { after: 0 }));
        for page in ["state/", "x", "../state", "/"] {
            assert_eq!(asked(&token, "GET", &at(page), &own), Err(Refused::Path), "{page}");
        }
    }

    #[test]
    fn without_the_token_nothing_is_there() {
        let token = Token::random().expect("random");
        let other = Token::random().expect("random");
        for path in [
            "/".to_owned(),
            "/state".to_owned(),
            "//state".to_owned(),
            format!("/{}", token.reveal()),
            format!("/{}/", other.reveal()),
            format!("/{}/state", other.reveal()),
            format!("/state?token={}", token.reveal()),
            format!("/{}/", token.reveal().to_uppercase().replace(|c: char| c.is_ascii_digit(), "x")),
        ] {
            assert_eq!(asked(&token, "GET", &path, &["127.0.0.1:8400"]), Err(Refused::Path), "{path}");
        }
    }

    #[test]
    fn another_name_for_this_machine_is_refused_also_with_the_token() {
        let token = Token::random().expect("random");
        let path = format!("/{}/state", token.reveal());
        for hosts in [
            &[][..],
            &["evil.example"],
            &["evil.example:8400"],
            &["127.0.0.1.evil.example:8400"],
            &["localhost.evil.example"],
            &["127.0.0.1:8400", "evil.example"],
            &["127.0.0.1:evil"],
            &["127.0.0.1:8400:1"],
            &["[::1]:8400"],
            &["0.0.0.0:8400"],
            &["user@127.0.0.1:8400"],
        ] {
            assert_eq!(asked(&token, "GET", &path, hosts), Err(Refused::Host), "{hosts:?}");
        }
    }

    #[test]
    fn no_method_that_changes_anything_is_served() {
        let token = Token::random().expect("random");
        let path = format!("/{}/state", token.reveal());
        for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"] {
            assert_eq!(asked(&token, method, &path, &["localhost"]), Err(Refused::Method), "{method}");
        }
    }
}
