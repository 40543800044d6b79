//! Lays out the vocabulary o200k, and what its splitting rules want to know of characters, as tables
//! that need no unpacking.

use std::{env, error::Error, fs, path::Path};

use layout::{EMPTY, LONGEST, MARK_AT, RANK_BITS, START_BITS, TABLE_BITS, place};
use regex_syntax::hir::{Class, HirKind};

#[path = "src/layout.rs"]
mod layout;

type Made<T> = Result<T, Box<dyn Error>>;

fn main() -> Made<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/layout.rs");
    let folder = env::var("OUT_DIR")?;
    let folder = Path::new(&folder);
    let tokens = tokens()?;
    fs::write(folder.join("bytes"), tokens.concat())?;
    fs::write(folder.join("table"), table(&tokens)?)?;
    fs::write(folder.join("pairs"), pairs(&tokens))?;
    let (blocks, kinds) = blocks(&kinds()?)?;
    fs::write(folder.join("blocks"), blocks)?;
    fs::write(folder.join("kinds"), kinds)?;
    Ok(())
}

/// All tokens, by rank.
fn tokens() -> Made<Vec<Vec<u8>>> {
    let o200k = tiktoken::get_encoding("o200k_base").ok_or("no vocabulary o200k")?;
    let tokens = (0..o200k.vocab_size() as u32).map(|rank| o200k.decode(&[rank]));
    Ok(tokens.collect())
}

fn table(tokens: &[Vec<u8>]) -> Made<Vec<u8>> {
    let mut table = vec![EMPTY; 1 << TABLE_BITS];
    let mut start = 0;
    for (rank, token) in tokens.iter().enumerate() {
        if rank >> RANK_BITS != 0 || start >> START_BITS != 0 || token.len() > LONGEST {
            return Err(format!("token {rank} does not fit into a slot").into());
        }
        let (mut at, mark) = place(token);
        while table[at] != EMPTY {
            at = (at + 1) % table.len();
        }
        table[at] = rank as u64 | (start as u64) << RANK_BITS | mark << MARK_AT;
        start += token.len();
    }
    Ok(table.iter().flat_map(|slot| slot.to_le_bytes()).collect())
}

fn pairs(tokens: &[Vec<u8>]) -> Vec<u8> {
    let mut ranks = vec![u32::MAX; 1 << 16];
    for (rank, token) in tokens.iter().enumerate() {
        if let [first, second] = token[..] {
            ranks[usize::from(first) << 8 | usize::from(second)] = rank as u32;
        }
    }
    ranks.iter().flat_map(|rank| rank.to_le_bytes()).collect()
}

/// The number of each character's kind. What a later class has, the earlier ones have lost.
fn kinds() -> Made<Vec<u8>> {
    let mut kinds = vec![0; char::MAX as usize + 1];
    let classes = [
        (1, r"[\p{Lu}\p{Lt}]"),
        (2, r"\p{Ll}"),
        (3, r"[\p{Lm}\p{Lo}]"),
        (4, r"\p{M}"),
        (5, r"\p{N}"),
        (6, r"\s"),
        (7, r"[\r\n]"),
    ];
    for (number, class) in classes {
        let parsed = regex_syntax::parse(class)?;
        let HirKind::Class(Class::Unicode(characters)) = parsed.kind() else {
            return Err(format!("{class} is no class of characters").into());
        };
        for range in characters.iter() {
            kinds[range.start() as usize..=range.end() as usize].fill(number);
        }
    }
    Ok(kinds)
}

/// The same as blocks of 256, each different one once.
fn blocks(kinds: &[u8]) -> Made<(Vec<u8>, Vec<u8>)> {
    let mut different: Vec<&[u8]> = Vec::new();
    let mut blocks = Vec::new();
    for block in kinds.chunks(256) {
        let known = different.iter().position(|known| *known == block);
        let at = known.unwrap_or(different.len());
        if known.is_none() {
            different.push(block);
        }
        blocks.push(u8::try_from(at)?);
    }
    Ok((blocks, different.concat()))
}
