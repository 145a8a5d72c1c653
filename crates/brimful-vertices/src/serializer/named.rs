//! Serializers by name: `compact`, `native`, `generic`, and each with `+lz4`, `+zstd` or `+zlib`.

use super::{Compact, Compressing, Generic, Method, Native, Serializer};
use crate::error::one_of;
use crate::error::{Error, Result};
use crate::vertex::Stored;

/// The serializer of this name, for vertices that all of them can write.
///
/// ```
/// use brimful_vertices::{Vertex, serializer::named};
///
/// assert_eq!(named::<Vertex<u64, f64>>("compact+zstd")?.name(), "compact+zstd");
/// let unknown = named::<Vertex<u64, f64>>("compact+rar").err().unwrap();
/// assert_eq!(unknown.to_string(), "there is no compression \"rar\"; use lz4, zstd or zlib");
/// # Ok::<(), brimful_vertices::Error>(())
/// ```
///
/// # Errors
/// [`Error::Usage`] for an unknown name.
pub fn named<V: Stored>(name: &str) -> Result<Box<dyn Serializer<V>>>
where
    Compact: Serializer<V>,
    Native: Serializer<V>,
    Generic: Serializer<V>,
{
    let (plain, method) = match name.split_once('+') {
        Some((plain, method)) => (plain, Some(method)),
        None => (name, None),
    };
    let serializer: Box<dyn Serializer<V>> = match plain {
        "compact" => Box::new(Compact),
        "native" => Box::new(Native),
        "generic" => Box::new(Generic),
        _ => {
            let problem =
                format!("there is no serializer {plain:?}; use compact, native or generic");
            return Err(Error::Usage(problem));
        }
    };
    let Some(method) = method else {
        return Ok(serializer);
    };
    let found = Method::ALL.iter().find(|(name, _)| *name == method);
    let (_, method) = found.ok_or_else(|| {
        let names = one_of(Method::ALL.iter().map(|(name, _)| *name));
        Error::Usage(format!("there is no compression {method:?}; use {names}"))
    })?;
    Ok(Box::new(Compressing::new(serializer, *method)?))
}
