//! The algebra of a conversation.
