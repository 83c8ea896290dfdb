"""A local double of the Hugging Face Hub: what its client asks for when a folder is pushed and pulled."""

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "a" * 40


class Double(ThreadingHTTPServer):
    """Repositories by name, each with its files."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.repos = {}
        self.asked = []

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, value=None, status=200, data=None, **headers):
        data = json.dumps(value).encode() if data is None else data
        self.send_response(status)
        for name, text in {"Content-Length": len(data), "X-Repo-Commit": COMMIT, **headers}.items():
            self.send_header(name.replace("_", "-"), str(text))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def missing(self):
        self.answer({"error": "not found"}, 404, X_Error_Code="RepoNotFound", X_Error_Message="Repository not found")

    def do_POST(self):
        body, path = self.body(), urlsplit(self.path).path
        self.server.asked.append((self.command, path))
        if path == "/api/repos/create":
            given = json.loads(body)
            name = f"{given['organization']}/{given['name']}" if given.get("organization") else given["name"]
            self.server.repos.setdefault(name, {})
            return self.answer({"url": f"{self.server.address}/{name}", "name": name, "id": "1"})
        if path == "/api/validate-yaml":
            return self.answer({"errors": [], "warnings": []})
        found = re.fullmatch(r"/api/models/([^/]+/[^/]+)/(preupload|commit)/main", path)
        if found is None or found[1] not in self.server.repos:
            return self.missing()
        if found[2] == "preupload":
            files = [{"path": file["path"], "uploadMode": "regular"} for file in json.loads(body)["files"]]
            return self.answer({"files": [{**file, "shouldIgnore": False, "oid": None} for file in files]})
        for line in body.splitlines():
            entry = json.loads(line)
            if entry["key"] == "file":
                assert entry["value"]["encoding"] == "base64"
                self.server.repos[found[1]][entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
        url = f"{self.server.address}/{found[1]}/commit/{COMMIT}"
        return self.answer({"commitUrl": url, "commitOid": COMMIT, "commitMessage": "pushed"})

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        self.server.asked.append((self.command, path))
        info = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/[^/]+)?(?:/.*)?", path)
        if info is not None and info[1] in self.server.repos:
            files = self.server.repos[info[1]]
            if info[2] == "tree":
                return self.answer(
                    [
                        {"type": "file", "path": name, "size": len(data), "oid": digest(data)}
                        for name, data in files.items()
                    ]
                )
            siblings = [{"rfilename": name, "size": len(data), "blobId": digest(data)} for name, data in files.items()]
            about = {"id": info[1], "modelId": info[1], "sha": COMMIT, "private": False, "tags": []}
            return self.answer({**about, "siblings": siblings, "downloads": 0, "likes": 0})
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path)
        data = None if file is None else self.server.repos.get(file[1], {}).get(file[2])
        if data is None:
            return self.missing()
        return self.answer(data=data, ETag=f'"{digest(data)}"', Content_Type="application/octet-stream")

    do_HEAD = do_GET  # noqa: N815


def digest(data):
    return hashlib.sha1(data).hexdigest()


@contextmanager
def running_double():
    double = Double()
    thread = threading.Thread(target=double.serve_forever)
    thread.start()
    try:
        yield double
    finally:
        double.shutdown()
        thread.join()
        double.server_close()
