//! JSON with a version, in manifests.

use std::path::Path;

use brimful_store::Error;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Parses a JSON payload whose field `format` is its version; `file` and `offset` locate it in
/// errors.
///
/// # Errors
/// [`Error::Version`] for a version above `supported`; [`Error::Corrupt`] for a payload that is not
/// a `T`.
pub fn parse<T: DeserializeOwned>(
    file: &Path,
    offset: u64,
    payload: &[u8],
    supported: u32,
) -> Result<T, Error> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let corrupt = |error: serde_json::Error| Error::corrupt(file, offset, error.to_string());
    // Later versions may have other fields, so the version is checked first.
    let Version { format: found } = serde_json::from_slice(payload).map_err(corrupt)?;
    if found > supported {
        return Err(Error::Version { path: file.into(), found, supported });
    }
    serde_json::from_slice(payload).map_err(corrupt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Payload {
        format: u32,
    }

    fn parsed(text: &str) -> Result<Payload, Error> {
        parse(Path::new("manifest-1"), 0, text.as_bytes(), 2)
    }

    #[test]
    fn a_later_version_is_named_whatever_its_fields_are() {
        let later = parsed(r#"{"format": 3, "new": true}"#);
        assert!(matches!(later, Err(Error::Version { found: 3, supported: 2, .. })));
        assert!(matches!(parsed(r#"{"format": 2, "new": true}"#), Err(Error::Corrupt { .. })));
        assert_eq!(parsed(r#"{"format": 1}"#).unwrap().format, 1);
    }
}
