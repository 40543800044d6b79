//! A model over https, whose certificate is checked.

use asyncagents_scripted_model::{Reply, Script, When};

use crate::{Home, text};

#[path = "../../benches/tls/mod.rs"]
mod tls;

#[test]
fn a_model_over_https_is_asked_only_if_its_certificate_is_trusted() {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("Encrypted.")));
    let folder = home.folder.path();
    let Some(url) = tls::in_front_of(&home.runtime, folder, &home.model.url()) else {
        println!("skipped: openssl cannot make a certificate here");
        return;
    };
    let run = |certificates: &str| {
        let base = format!("providers.test.base_url={url}");
        let mut command = home.command(&["-c", &base, "-c", "models.attempts=1", "run", "Hello"]);
        command.env("SSL_CERT_FILE", folder.join(certificates));
        command.output().expect("runs")
    };
    let roots = tls::roots(folder);
    let roots = roots.file_name().and_then(|name| name.to_str());
    let trusted = run(roots.expect("a name"));
    assert_eq!(trusted.status.code(), Some(0), "{trusted:?}");
    assert_eq!(text(&trusted.stdout), "Encrypted.");
    let asked = home.model.requests().len();

    std::fs::write(folder.join("none.pem"), "").expect("written");
    let unknown = run("none.pem");
    assert_ne!(unknown.status.code(), Some(0), "{unknown:?}");
    let said = text(&unknown.stderr);
    assert!(said.contains("certificate"), "{said}");
    assert_eq!(home.model.requests().len(), asked, "nothing was sent");
}
