//! `DiskBag<T>`: records of any length, as values of a type.

use std::marker::PhantomData;
use std::ops::Deref;
use std::path::Path;

use brimful_store::wording::counted;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bag::RecordBag;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::order::Order;

/// Converts values to bytes and back.
pub trait Codec<T> {
    /// The codec's name; a bag opens only with the codec that made it.
    const NAME: &'static str;
    /// Encodes `value` and appends the bytes to `out`.
    fn encode(value: &T, out: &mut Vec<u8>) -> std::result::Result<(), String>;
    /// Decodes a value.
    fn decode(bytes: &[u8]) -> std::result::Result<T, String>;
}

/// The codec of any `serde` type, in the compact format of the `postcard` crate.
#[derive(Debug, Clone, Copy, Default)]
pub struct Postcard;

impl<T: Serialize + DeserializeOwned> Codec<T> for Postcard {
    const NAME: &'static str = "postcard";

    fn encode(value: &T, out: &mut Vec<u8>) -> std::result::Result<(), String> {
        let buffer = std::mem::take(out);
        *out = postcard::to_extend(value, buffer).map_err(|e| e.to_string())?;
        Ok(())
    }

    fn decode(bytes: &[u8]) -> std::result::Result<T, String> {
        match postcard::take_from_bytes(bytes) {
            Ok((value, [])) => Ok(value),
            Ok((_, rest)) => Err(format!("{} left over", counted(rest.len(), "byte"))),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// A disk-resident sequence of values of any length.
///
/// ```
/// # use std::sync::Arc;
/// use brimful_collections::{DiskBag, Options};
/// use brimful_store::{Budget, Job, Resources};
///
/// # let folder = tempfile::tempdir()?;
/// let resources = Arc::new(Resources::new(Budget::new(16 << 20, 0), Arc::new(Job::new()), None)?);
/// let path = folder.path().join("words");
/// let words = DiskBag::<Vec<String>>::open(&path, Options::new(&resources))?;
/// let id = words.append(&vec!["more".into(), "than".into()])?;
/// words.store(id, &vec!["more".into(), "than".into(), "memory".into()])?;
/// assert_eq!(words.fetch(id)?.len(), 3);
/// words.append(&vec!["budget".into()])?;
/// words.store_batch(&[1, 0], &[vec!["in".into()], vec![]])?;
/// assert_eq!(words.fetch_next(0, 5)?, [vec![], vec!["in".to_owned()]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DiskBag<T, C = Postcard> {
    records: RecordBag,
    value: PhantomData<fn() -> (T, C)>,
}

/// Derefs to the operations that do not depend on the type of values.
impl<T, C> Deref for DiskBag<T, C> {
    type Target = RecordBag;

    fn deref(&self) -> &RecordBag {
        &self.records
    }
}

impl<T: Send, C: Codec<T>> DiskBag<T, C> {
    /// Opens the bag at `path`, or makes it.
    ///
    /// # Errors
    /// As [`RecordBag::open`].
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        let records = RecordBag::open(path, C::NAME.as_bytes(), options)?;
        Ok(Self { records, value: PhantomData })
    }

    /// The records as bytes.
    pub fn records(&self) -> &RecordBag {
        &self.records
    }

    fn decode(&self, id: u64, bytes: &[u8]) -> Result<T> {
        C::decode(bytes).map_err(|problem| Error::Codec {
            path: self.records.path().into(),
            id,
            problem,
        })
    }

    fn encode(&self, value: &T) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        C::encode(value, &mut out).map_err(|problem| {
            Error::Usage(format!("the serializer refuses a value: {problem}"))
        })?;
        Ok(out)
    }

    /// Value `id`.
    ///
    /// # Errors
    /// `Error::OutOfRange`, `Error::Removed`; `Error::Codec` if a value cannot be decoded.
    pub fn fetch(&self, id: u64) -> Result<T> {
        self.records.fetch(id, |bytes| self.decode(id, bytes))?
    }

    /// The values `ids`, in the order of `ids`.
    ///
    /// # Errors
    /// `Error::OutOfRange`, `Error::Removed`; `Error::Codec` if a value cannot be decoded.
    pub fn fetch_batch(&self, ids: &[u64]) -> Result<Vec<T>> {
        let batches = self.records.fetch_batch(ids)?;
        let records = batches.iter().flat_map(|records| records.iter());
        ids.iter().zip(records).map(|(id, bytes)| self.decode(*id, bytes)).collect()
    }

    /// The values from `start` on that fit in a batch: at most `most`, and none only if `start` is
    /// the end.
    ///
    /// # Errors
    /// [`Error::Removed`] for the first removed value.
    pub fn fetch_next(&self, start: u64, most: usize) -> Result<Vec<T>> {
        let records = self.records.fetch_next(start, most)?;
        let value = |(index, id): (usize, u64)| {
            let removed = || Error::Removed { path: self.records.path().into(), id };
            self.decode(id, records.get(index).ok_or_else(removed)?)
        };
        (0..records.len()).zip(start..).map(value).collect()
    }

    /// Replaces value `id`.
    ///
    /// # Errors
    /// `Error::OutOfRange`; `Error::Usage` if the value cannot be encoded.
    pub fn store(&self, id: u64, value: &T) -> Result<()> {
        self.records.store(id, &self.encode(value)?)
    }

    /// Replaces the values `ids`; the last value of a repeated id stays.
    ///
    /// # Errors
    /// `Error::OutOfRange`; `Error::Usage` if a value cannot be encoded, or if the numbers of ids
    /// and values differ.
    pub fn store_batch(&self, ids: &[u64], values: &[T]) -> Result<()> {
        let records = values.iter().map(|value| self.encode(value)).collect::<Result<Vec<_>>>()?;
        self.records.store_batch(ids, &records)
    }

    /// Appends one value; returns its id.
    ///
    /// # Errors
    /// `Error::Usage` if the value cannot be encoded.
    pub fn append(&self, value: &T) -> Result<u64> {
        self.records.append(&self.encode(value)?)
    }

    /// Appends values; returns the id of the first.
    ///
    /// # Errors
    /// `Error::Usage` if a value cannot be encoded.
    pub fn extend<'v>(&self, values: impl IntoIterator<Item = &'v T>) -> Result<u64>
    where
        T: 'v,
    {
        let records =
            values.into_iter().map(|value| self.encode(value)).collect::<Result<Vec<_>>>()?;
        self.records.extend(&records)
    }

    /// All values with their ids, read in batches; skips removed values. Stops after an error of
    /// reading.
    pub fn iter(&self) -> impl Iterator<Item = Result<(u64, T)>> + '_ {
        let (step, end) = (self.records.batch_len(), self.len());
        let mut next = 0;
        std::iter::from_fn(move || {
            if next >= end {
                return None;
            }
            let start = next;
            let records = match self.records.fetch_next(start, step) {
                Ok(records) => records,
                Err(error) => {
                    next = end;
                    return Some(vec![Err(error)]);
                }
            };
            next += records.len() as u64;
            let value = |index: usize| {
                let id = start + index as u64;
                records.get(index).map(|bytes| self.decode(id, bytes).map(|value| (id, value)))
            };
            Some((0..records.len()).filter_map(value).collect())
        })
        .flatten()
    }

    /// Passes all values to `f`, which may change them, as [`RecordBag::process`] does with
    /// records.
    ///
    /// # Errors
    /// Errors of `f`; `Error::OutOfRange` for an id of `order`; `Error::Codec` if a value cannot be
    /// decoded; `Error::Usage` if one cannot be encoded.
    pub fn process(
        &self,
        order: &Order,
        f: impl Fn(u64, &mut T) -> Result<()> + Sync,
    ) -> Result<()> {
        self.records.process(order, |id, bytes| {
            let mut value = self.decode(id, bytes)?;
            f(id, &mut value)?;
            *bytes = self.encode(&value)?;
            Ok(())
        })
    }
}
