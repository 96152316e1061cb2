"""schemathesis makes requests of the OpenAPI description, good and bad ones, and looks for answers that blame the server.

Run with the Python of .venv-schemathesis against a server that accepts any bearer token.
"""

import os
import subprocess
import sys

import wire
from wire import case


@case
def no_request_meets_a_fault_of_the_server(server):
    command = [
        os.path.join(os.path.dirname(sys.executable), "schemathesis"), "run",
        f"https://localhost:{server.https}/openapi.json", "--tls-verify", server.ca,
        "-H", "Authorization: Bearer any", "-H", "access_token_auth: true", "-H", f"project_id: {server.sender}",
        "-H", f"x-goog-api-key: {server.api_key}", "--checks", "not_a_server_error", "--max-examples", "5",
        "--seed", "1", "--phases", "coverage,fuzzing", "--no-color",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "passed" in done.stdout, done.stdout[-2000:]


if __name__ == "__main__":
    wire.main(lambda function, server: function(server))
