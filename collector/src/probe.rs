//! What the cards of this node say.
