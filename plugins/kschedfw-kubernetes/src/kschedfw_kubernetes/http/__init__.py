"""HTTP/1.1 over blocking sockets, for clients whose calls end by a deadline: connections and answers."""
