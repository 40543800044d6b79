//! Whose files may tell a user's agents what to do.

/// Root's user number.
const ROOT: u32 = 0;

/// Whether a file of this owner may: settings, instructions, agents and skills of a project. Other
/// users can put files into and above a folder. Root could do anything anyway, and owns what came
/// with a container's image.
pub fn may_instruct(owner: u32, user: u32) -> bool {
    owner == user || owner == ROOT
}

#[cfg(test)]
mod tests {
    use super::may_instruct;

    #[test]
    fn the_user_and_root_may_and_nobody_else() {
        assert!(may_instruct(1000, 1000) && may_instruct(0, 1000) && may_instruct(0, 0));
        assert!(!may_instruct(1001, 1000) && !may_instruct(1000, 0));
    }
}
