//! Keys as their holders have them: `ox_`, the id, and a secret that is shown once.
//!
//! What is kept of the secret is its digest. It has 256 random bits, so there is nothing to guess, and a slow digest would only make
//! every request slow.

use std::fmt;

use orchestrix_core::KeyId;
use orchestrix_store::KeyDigest;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const PREFIX: &str = "ox_";
/// Characters of an id: no letter or digit that is taken for another would help, since nobody types them.
const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// A key with its secret.
pub(crate) struct Shown {
    pub(crate) id: KeyId,
    secret: String,
}

// Whatever is printed of it by accident is not the secret.
impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shown({})", self.id)
    }
}

impl Shown {
    /// A new one.
    pub(crate) fn fresh() -> Self {
        // Every character is as likely as another, but for a bias that is no matter in what everybody may see.
        let letters = rand::random::<[u8; KeyId::LENGTH]>().map(|byte| ALPHABET[usize::from(byte) % ALPHABET.len()]);
        let id = KeyId::trusted(std::str::from_utf8(&letters).expect("the alphabet is ASCII"));
        let secret = rand::random::<[u8; 32]>().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { id, secret }
    }

    /// Reads one as it is shown.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let secret = (secret.len() == 64 && secret.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(secret)?;
        Some(Self { id: KeyId::new(id).ok()?, secret: secret.to_owned() })
    }

    /// All of it, for its holder.
    pub(crate) fn text(&self) -> String {
        format!("{PREFIX}{}_{}", self.id, self.secret)
    }

    /// What is kept of the secret.
    pub(crate) fn digest(&self) -> KeyDigest {
        KeyDigest(Sha256::digest(self.secret.as_bytes()).into())
    }
}

/// Whether both came of the same secret. Takes the same time whatever they are.
pub(crate) fn same(one: &KeyDigest, other: &KeyDigest) -> bool {
    one.0.ct_eq(&other.0).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_once_is_read_again_and_no_other_fits() {
        let shown = Shown::fresh();
        let read = Shown::read(&shown.text()).unwrap();
        assert_eq!(read.id, shown.id);
        assert!(same(&read.digest(), &shown.digest()));
        assert!(!same(&Shown::fresh().digest(), &shown.digest()));
        assert!(!format!("{shown:?}").contains(&shown.secret));
        let text = shown.text();
        for bad in
            ["", "ox_", "ox__", &text[1..], &text[..text.len() - 1], &format!("{text}0"), &text.replace('_', "-")]
        {
            assert!(Shown::read(bad).is_none(), "{bad}");
        }
    }
}
