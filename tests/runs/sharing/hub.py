"""A stand-in for a Hugging Face hub: what the client of ``huggingface_hub`` asks when it pushes
and pulls a model, without Xet. No server that speaks this is on the package index."""

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

TOKEN = "hf_of_the_test"
LARGE = 4_000
"""Bytes from which a file is one of git LFS."""


class Hub(ThreadingHTTPServer):
    """Repositories, each with its branches and commits; blobs by their sha256."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.repos, self.blobs = {}, {}
        self.uploads = []
        self.asked = []
        self.wrong = lambda method, path: None
        """Gives the status that a request is refused with."""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def files(self, repo, revision="main"):
        known = self.repos[repo]
        return known["commits"].get(known["branches"].get(revision, revision))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a body after its head would wait 40 ms

    def log_message(self, *_):
        pass

    def _answer(self, status, body=b"", **headers):
        data = json.dumps(body).encode() if not isinstance(body, bytes) else body
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _do(self):
        hub, path = self.server, unquote(urlsplit(self.path).path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        hub.asked.append(f"{self.command} {path}")
        if status := hub.wrong(self.command, path):
            self._answer(status, {"error": f"refused with {status}"})
            return
        fitting = (
            (re.fullmatch(pattern, f"{self.command} {path}"), act) for pattern, act in ROUTES
        )
        found, act = next((pair for pair in fitting if pair[0]), (None, None))
        if found is None:
            self._answer(404, {"error": f"no route {self.command} {path}"})
            return
        names = found.groupdict()
        allowed = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        repo = names.get("repo")
        if act is create and not allowed:
            self._answer(401, {"error": "Invalid username or password."})
            return
        if repo and (repo not in hub.repos or (hub.repos[repo]["private"] and not allowed)):
            code = 404 if allowed else 401
            self._answer(code, {"error": "Repository not found"}, X_Error_Code="RepoNotFound")
            return
        if self.command == "POST" and repo and not allowed:
            self._answer(403, {"error": "you have no rights"})
            return
        act(self, hub, body, **names)

    do_GET = do_HEAD = do_POST = do_PUT = _do


def create(handler, hub, body):
    asked = json.loads(body)
    owner = asked.get("organization") or "me"
    repo = f"{owner}/{asked['name']}"
    if repo in hub.repos:
        handler._answer(409, {"error": "exists", "url": f"{hub.url}/{repo}"})
        return
    first = {".gitattributes": b"*.safetensors filter=lfs\n"}
    hub.repos[repo] = {
        "private": bool(asked.get("private")) or asked.get("visibility") == "private",
        "branches": {"main": "0" * 40},
        "commits": {"0" * 40: first},
    }
    handler._answer(200, {"url": f"{hub.url}/{repo}", "id": repo})


def info(handler, hub, body, repo, revision=None):
    known = hub.repos[repo]
    sha = known["branches"].get(revision or "main", revision)
    if sha not in known["commits"]:
        handler._answer(404, {"error": "no revision"}, X_Error_Code="RevisionNotFound")
        return
    siblings = [{"rfilename": name} for name in known["commits"][sha]]
    handler._answer(
        200, {"id": repo, "sha": sha, "private": known["private"], "siblings": siblings}
    )


def branch(handler, hub, body, repo, revision):
    known = hub.repos[repo]
    if revision in known["branches"]:
        handler._answer(409, {"error": "exists"})
        return
    known["branches"][revision] = known["branches"]["main"]
    handler._answer(200, {})


def validate(handler, hub, body):
    handler._answer(200, {"errors": [], "warnings": []})


def preupload(handler, hub, body, repo, revision):
    files = [
        {
            "path": each["path"], "shouldIgnore": False,
            "uploadMode": "lfs" if each["size"] >= LARGE else "regular",
        }
        for each in json.loads(body)["files"]
    ]  # fmt: skip
    handler._answer(200, {"files": files})


def batch(handler, hub, body, repo):
    objects = []
    for each in json.loads(body)["objects"]:
        actions = {"upload": {"href": f"{hub.url}/lfs/{each['oid']}"}}
        objects.append({**each, **({} if each["oid"] in hub.blobs else {"actions": actions})})
    handler._answer(200, {"transfer": "basic", "objects": objects})


def put(handler, hub, body, oid):
    if hashlib.sha256(body).hexdigest() != oid:
        handler._answer(400, {"error": "another sha256"})
        return
    hub.blobs[oid] = body
    hub.uploads.append(oid)
    handler._answer(200)


def commit(handler, hub, body, repo, revision):
    known = hub.repos[repo]
    files = dict(hub.files(repo, revision))
    for line in map(json.loads, body.splitlines()):
        value = line["value"]
        match line["key"]:
            case "header" if value.get("parentCommit") not in (None, known["branches"][revision]):
                handler._answer(412, {"error": "A commit has happened since. Please refresh."})
                return
            case "file":
                files[value["path"]] = base64.b64decode(value["content"])
                hub.uploads.append(value["path"])
            case "lfsFile":
                files[value["path"]] = hub.blobs[value["oid"]]
            case "deletedFile":
                del files[value["path"]]
    sha = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
    known["commits"][sha] = files
    known["branches"][revision] = sha
    handler._answer(200, {"commitUrl": f"{hub.url}/{repo}/commit/{sha}", "commitOid": sha})


def tree(handler, hub, body, repo, revision, path=""):
    files, found = hub.files(repo, revision), {}
    under = f"{path}/" if path else ""
    for name, data in files.items():
        if name.startswith(under):
            top, _, rest = name[len(under) :].partition("/")
            kind = "directory" if rest else "file"
            found[under + top] = {
                "type": kind, "path": under + top, "oid": "0" * 40, "size": 0 if rest else len(data)
            }  # fmt: skip
    if path and not found:
        handler._answer(404, {"error": "no entry"}, X_Error_Code="EntryNotFound")
        return
    handler._answer(200, [*found.values()])


def resolve(handler, hub, body, repo, revision, path):
    data = (hub.files(repo, revision) or {}).get(path)
    if data is None:
        handler._answer(404, {"error": "no entry"}, X_Error_Code="EntryNotFound")
        return
    headers = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X_Repo_Commit": revision}
    if asked := re.fullmatch(r"bytes=(\d+)-(\d*)", handler.headers.get("Range", "")):
        first = int(asked[1])
        part = data[first : int(asked[2]) + 1 if asked[2] else None]
        headers["Content_Range"] = f"bytes {first}-{first + len(part) - 1}/{len(data)}"
        handler._answer(206, part, **headers)
        return
    handler._answer(200, data, **headers)


_REPO, _REVISION = r"(?P<repo>[\w.-]+/[\w.-]+)", r"(?P<revision>[\w./-]+?)"
ROUTES = [
    ("POST /api/repos/create", create),
    ("POST /api/validate-yaml", validate),
    (f"GET /api/models/{_REPO}", info),
    (f"GET /api/models/{_REPO}/revision/{_REVISION}", info),
    (f"POST /api/models/{_REPO}/branch/{_REVISION}", branch),
    (f"POST /api/models/{_REPO}/preupload/{_REVISION}", preupload),
    (f"POST /api/models/{_REPO}/commit/{_REVISION}", commit),
    (rf"GET /api/models/{_REPO}/tree/(?P<revision>[\w.-]+)(?:/(?P<path>.+))?", tree),
    (r"POST /(?P<repo>[\w.-]+/[\w.-]+)\.git/info/lfs/objects/batch", batch),
    (r"PUT /lfs/(?P<oid>\w+)", put),
    (rf"(?:GET|HEAD) /{_REPO}/resolve/(?P<revision>[\w.-]+)/(?P<path>.+)", resolve),
]


@contextmanager
def serving():
    """A hub that answers while the block runs."""
    with Hub() as hub:
        thread = threading.Thread(target=hub.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
