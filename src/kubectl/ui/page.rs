//! The page: HTML, style and script of this directory as one text, and the headers that every answer has. Nothing of the
//! cluster is written into it; the script asks for that, and shows it as text alone.

use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderValue, header};

use super::token::Token;

const STYLE: &str = include_str!("style.css");
/// In the order in which they need one another.
const SCRIPTS: [&str; 6] = [
    include_str!("text.js"),
    include_str!("model.js"),
    include_str!("matrix.js"),
    include_str!("timeline.js"),
    include_str!("details.js"),
    include_str!("live.js"),
];
/// Where the page takes them in.
const STYLE_MARK: &str = "/* style */";
const SCRIPT_MARK: &str = "/* script */";
/// What stands for the nonce of an answer.
const NONCE_MARK: &str = "nonce=\"NONCE\"";

static PAGE: LazyLock<String> = LazyLock::new(|| {
    let script = format!("(() => {{\n\"use strict\";\n{}}})();", SCRIPTS.concat());
    include_str!("page.html").replace(STYLE_MARK, STYLE).replace(SCRIPT_MARK, &script)
});

/// The page with this nonce, which its style and its script need to be taken.
pub fn page(nonce: &Token) -> String {
    PAGE.replace(NONCE_MARK, &format!("nonce=\"{}\"", nonce.reveal()))
}

/// What a browser may do with an answer: show it, in no other site's frame, run the one script, ask this server alone, tell
/// nobody the address, and keep nothing.
pub fn headers(nonce: Option<&Token>) -> HeaderMap {
    let own = nonce.map(|nonce| {
        let nonce = nonce.reveal();
        format!("script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; ")
    });
    let policy = format!(
        "default-src 'none'; {}base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        own.unwrap_or_default()
    );
    let mut headers = HeaderMap::new();
    let policy = HeaderValue::from_str(&policy).expect("hexadecimal in a header");
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    for (name, value) in [
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CACHE_CONTROL, "no-store"),
        // A connection serves one request: none is ended in the middle of a later one.
        (header::CONNECTION, "close"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_whole_and_asks_nobody_for_a_part_of_it() {
        let nonce = Token::random().expect("random");
        let page = page(&nonce);
        assert_eq!(page.matches(&format!("nonce=\"{}\"", nonce.reveal())).count(), 2);
        for mark in [STYLE_MARK, SCRIPT_MARK, NONCE_MARK] {
            assert!(!page.contains(mark), "{mark}");
        }
        // Nothing of it leads anywhere, and none of it is written as markup by the script.
        for word in [
            "http:",
            "https:",
            "src=",
            "@import",
            "url(",
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "eval(",
        ] {
            assert!(!page.contains(word), "{word}");
        }
        assert!(!page.contains(" style=") && !page.contains(" onclick="), "the policy would not take it");
    }

    #[test]
    fn each_answer_says_what_a_browser_may_do_with_it() {
        let nonce = Token::random().expect("random");
        let policy = |nonce: Option<&Token>| {
            headers(nonce)[header::CONTENT_SECURITY_POLICY].to_str().expect("text").to_owned()
        };
        let page = policy(Some(&nonce));
        assert!(page.starts_with("default-src 'none'; script-src 'nonce-"), "{page}");
        for word in ["-inline", "-eval", "*", "http", "frame-ancestors 'self'"] {
            assert!(!page.contains(word), "{page}");
        }
        assert!(!policy(None).contains("script-src"));
        assert!(!headers(None).contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
    }
}
