"""The WSGI application: JSON in, JSON out."""

import json
from datetime import datetime
from wsgiref.simple_server import make_server

from . import config, db
from .routes import answer

REASONS = {200: "OK", 201: "Created", 404: "Not Found", 409: "Conflict", 410: "Gone"}
REASONS[422] = "Unprocessable Content"


def create_app(database):
    """Returns the application over an open database."""

    def app(environ, start_response):
        size = int(environ.get("CONTENT_LENGTH") or 0)
        body = json.loads(environ["wsgi.input"].read(size) or b"{}")
        status, said = answer(
            database,
            environ["REQUEST_METHOD"],
            environ["PATH_INFO"],
            body,
            datetime.now(),
        )
        start_response(
            f"{status} {REASONS.get(status, 'Error')}",
            [("Content-Type", "application/json")],
        )
        return [json.dumps(said).encode()]

    return app


def main():
    app = create_app(db.connect(config.DATABASE))
    with make_server("", config.PORT, app) as server:
        print(f"{config.HARBOUR_NAME}: listening on {config.PORT}")
        server.serve_forever()


if __name__ == "__main__":
    main()
