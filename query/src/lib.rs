//! Reports, pages and SQL over the books.
