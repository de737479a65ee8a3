#!/usr/bin/env python3
"""mutator.py PORT CERTIFICATE KEY: a webhook on loopback. /claim gives a pod the claim that its annotation
e2e.example.com/claim names; /uid takes the UID from a Binding; what is not for them, they let pass. /hold prints the name, and does
not answer, but to a dry run."""
import base64
import http.server
import json
import ssl
import sys
import time


def claim(pod):
    name = pod["metadata"].get("annotations", {}).get("e2e.example.com/claim")
    if name is None:
        return []
    volumes = pod["spec"].get("volumes", []) + [{"name": "added", "persistentVolumeClaim": {"claimName": name}}]
    return [{"op": "add", "path": "/spec/volumes", "value": volumes}]


def nothing(_):
    return []


def uid(binding):
    return [{"op": "remove", "path": "/metadata/uid"}] if "uid" in binding["metadata"] else []


class Webhook(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review.pop("request")
        if self.path.startswith("/hold"):
            print("asked about" if request.get("dryRun") else "held", request["name"], flush=True)
            time.sleep(0 if request.get("dryRun") else 3600)
        patch = {"/claim": claim, "/uid": uid, "/hold": nothing}[self.path.split("?")[0]](request["object"])
        review["response"] = {"uid": request["uid"], "allowed": True, "patchType": "JSONPatch",
                              "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
        body = json.dumps(review).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    def finish_request(self, request, client_address):  # in the connection's thread: others need not wait for its handshake
        super().finish_request(tls.wrap_socket(request, server_side=True), client_address)


tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(sys.argv[2], sys.argv[3])
Server(("127.0.0.1", int(sys.argv[1])), Webhook).serve_forever()
