"""The parts of a small HTTP server that several distributions share: ASGI types, the server, the check of Host."""
