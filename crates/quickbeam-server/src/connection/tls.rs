//! Encryption of connections by TLS 1.2 and 1.3.
//!
//! Above: the start of a connection. Below: rustls.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use sha2::{Digest, Sha256, Sha384, Sha512};
use x509_parser::prelude::{FromDer, X509Certificate};

/// The protocol that a client names when it begins with TLS, without asking for it before.
const PROTOCOL: &[u8] = b"postgresql";

/// The server's certificate and key, and whose client certificates it accepts.
///
/// ```no_run
/// use quickbeam_server::Tls;
///
/// let (certificate, key) = (std::fs::read("server.crt")?, std::fs::read("server.key")?);
/// let tls = Tls::from_pem(&certificate, &key, None)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    /// The hash of the certificate that clients bind their proofs to (RFC 5929).
    end_point: Option<Arc<[u8]>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Reads a certificate with its chain, its private key, and the certificates of the authorities
    /// whose client certificates are accepted, all in PEM form. Without authorities no client
    /// certificate is asked for.
    ///
    /// # Errors
    /// What is wrong with which of the three. Key material is not repeated.
    pub fn from_pem(
        certificate: &[u8],
        key: &[u8],
        client_authorities: Option<&[u8]>,
    ) -> Result<Tls, String> {
        let chain = certificates(certificate, "certificate")?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| "the key file has no private key in PEM form".to_owned())?;
        let end_point = chain.first().and_then(end_point).map(Into::into);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = match client_authorities {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates(pem, "client authority")? {
                    roots.add(authority).map_err(|error| format!("client authority: {error}"))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .allow_unauthenticated()
                        .build()
                        .map_err(|error| format!("client authority: {error}"))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| format!("certificate and key: {error}"))?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Tls { config: Arc::new(config), end_point })
    }

    pub(crate) fn connect(&self) -> Result<ServerConnection, rustls::Error> {
        ServerConnection::new(self.config.clone())
    }

    /// Returns the data that clients bind their proofs to, if the certificate has such.
    pub(crate) fn end_point(&self) -> Option<&[u8]> {
        self.end_point.as_deref()
    }
}

/// Whether the client named PostgreSQL's protocol in its first message.
pub fn names_protocol(tls: &ServerConnection) -> bool {
    tls.alpn_protocol() == Some(PROTOCOL)
}

/// Returns the common name of the client's certificate, which the handshake has verified.
pub fn common_name(tls: &ServerConnection) -> Option<String> {
    let certificate = tls.peer_certificates()?.first()?;
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let mut names = certificate.subject().iter_common_name();
    let name = names.next()?.as_str().ok()?.to_owned();
    // Of two names it is not known which one the authority has checked.
    names.next().is_none().then_some(name)
}

fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(format!("the {what} file has no certificate in PEM form")),
        Err(error) => Err(format!("the {what} file: {error}")),
    }
}

/// Returns the `tls-server-end-point` of a certificate: its hash, by the function of its signature,
/// SHA-256 in place of MD5 and SHA-1. `None` if its signature has no one hash function.
fn end_point(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    Some(match parsed.signature_algorithm.algorithm.to_id_string().as_str() {
        // RSA and ECDSA with SHA-384.
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => Sha384::digest(certificate).to_vec(),
        // RSA and ECDSA with SHA-512.
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => Sha512::digest(certificate).to_vec(),
        // RSA and ECDSA with SHA-256, and with the hash functions that it replaces.
        "1.2.840.113549.1.1.11"
        | "1.2.840.10045.4.3.2"
        | "1.2.840.113549.1.1.4"
        | "1.2.840.113549.1.1.5"
        | "1.2.840.10045.4.1" => Sha256::digest(certificate).to_vec(),
        _ => return None,
    })
}
