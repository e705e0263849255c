"""PyGithub and python-gitlab at the loopback servers of infold-testkit, and `infold fetch` beside them.

Called by scripts/test-sources, which builds and installs what is needed.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time

import github
import gitlab

ISSUES = 250


class Server:
    """A loopback server; it ends with the block."""

    def __init__(self, testkit):
        command = [testkit, "forge", "--issues", str(ISSUES)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines = [self.process.stdout.readline().split() for _ in range(4)]
        self.url, self.token = lines[0][2], lines[3][1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def check(name, holds):
    print(("ok      " if holds else "FAILED  ") + name, flush=True)
    if not holds:
        raise SystemExit(1)


def raises(kind, call, status):
    try:
        call()
    except kind as error:
        code = getattr(error, "status", None) or getattr(error, "response_code", None)
        return code == status
    return False


def use_github(server):
    auth = github.Auth.Token(server.token)
    hub = github.Github(base_url=server.url + "/api/v3", auth=auth, per_page=100, retry=None, seconds_between_requests=0, seconds_between_writes=0)
    check("PyGithub: the account of the token", hub.get_user().login == "infold-bot")
    repo = hub.get_repo("octo/app")
    issues = list(repo.get_issues(state="open", labels=["infold"], sort="created", direction="asc"))
    check("PyGithub: all pages of a list", [issue.number for issue in issues] == list(range(1, ISSUES + 2)))
    check("PyGithub: a pull request among issues", [i.number for i in issues if i.pull_request] == [ISSUES + 1])
    issue = repo.get_issue(7)
    comment = issue.create_comment("hello")
    check("PyGithub: a comment", [c.body for c in issue.get_comments()] == ["hello"] and comment.user.login == "infold-bot")
    issue.add_to_labels("infold:queued")
    issue.remove_from_labels("infold")
    check("PyGithub: labels", [label.name for label in repo.get_issue(7).labels] == ["infold:queued"])
    check("PyGithub: a label that is not there", raises(github.GithubException, lambda: issue.remove_from_labels("infold"), 404))
    issue.edit(title="edited", state="closed")
    check("PyGithub: an edit", repo.get_issue(7).title == "edited" and repo.get_issue(7).state == "closed")
    before = repo.get_issue(8)
    check("PyGithub: what has not changed is 304", before.update() is False)
    before.create_comment("changed")
    check("PyGithub: what has changed is not", before.update() is True)
    check("PyGithub: a renamed repository", hub.get_repo("octo/old-app").full_name == "octo/app")
    attic = hub.get_repo("octo/attic")
    check("PyGithub: an archived repository", attic.archived)
    check("PyGithub: no such repository", raises(github.UnknownObjectException, lambda: hub.get_repo("octo/none"), 404))
    wrong = github.Github(base_url=server.url + "/api/v3", auth=github.Auth.Token("wrong"), retry=None)
    check("PyGithub: a wrong token", raises(github.BadCredentialsException, lambda: wrong.get_user().login, 401))
    remaining = hub.get_rate_limit()
    core = getattr(remaining, "core", None) or remaining.resources.core
    check("PyGithub: the rate limit", core.remaining > 0 and hub.rate_limiting[0] > 0)
    return [i.number for i in repo.get_issues(state="open", labels=["infold"], sort="created", direction="asc")]


def use_gitlab(server):
    lab = gitlab.Gitlab(server.url, private_token=server.token, per_page=100)
    lab.auth()
    check("python-gitlab: the account of the token", lab.user.username == "infold-bot")
    project = lab.projects.get("octo/app")
    wanted = {"labels": ["infold"], "state": "opened", "order_by": "created_at", "sort": "asc"}
    listed = project.issues.list(iterator=True, **wanted)
    total = listed.total
    numbers = [issue.iid for issue in listed]
    check("python-gitlab: all pages of a list", len(numbers) == total == len(set(numbers)))
    keyset = project.issues.list(iterator=True, pagination="keyset", **wanted)
    check("python-gitlab: pages by key", [issue.iid for issue in keyset] == numbers)
    check("python-gitlab: merge requests", [it.iid for it in project.mergerequests.list(get_all=True, **wanted)] == [ISSUES + 1])
    issue = project.issues.get(9)
    issue.notes.create({"body": "hello\n/close"})
    check("python-gitlab: a note, and a command in it", [note.body for note in issue.notes.list(get_all=True)] == ["hello"] and project.issues.get(9).state == "closed")
    project.issues.update(9, {"state_event": "reopen", "add_labels": "infold:queued", "remove_labels": "infold"})
    check("python-gitlab: labels", project.issues.get(9).labels == ["infold:queued"])
    issue = project.issues.get(10)
    issue.description = "edited"
    issue.labels.append("more")
    issue.save()
    check("python-gitlab: an edit", project.issues.get(10).labels == ["infold", "more"] and project.issues.get(10).description == "edited")
    check("python-gitlab: a moved project", lab.projects.get("octo/old-app").path_with_namespace == "octo/app")
    check("python-gitlab: no such project", raises(gitlab.GitlabGetError, lambda: lab.projects.get("octo/none"), 404))
    attic = lab.projects.get("octo/attic")
    check("python-gitlab: an archived project", attic.archived)
    wrong = gitlab.Gitlab(server.url, private_token="wrong")
    check("python-gitlab: a wrong token", raises(gitlab.GitlabAuthenticationError, wrong.auth, 401))
    return [issue.iid for issue in project.issues.list(get_all=True, **wanted)] + [ISSUES + 1]


def fetch(infold, server, source, home):
    """Returns the numbers that `infold fetch` lists."""
    variable = {"github": "GITHUB_TOKEN", "gitlab": "GITLAB_TOKEN"}[source]
    base = {"github": server.url + "/api/v3", "gitlab": server.url}[source]
    config = os.path.join(home, "config.yaml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"sources: {{{source}: {{base_url: '{base}', repos: [octo/app]}}}}\n")
    environment = {"HOME": home, "PATH": os.environ["PATH"], variable: server.token}
    command = [infold, "--config", config, "--json", "fetch", "--source", source, "--dry-run"]
    start = time.monotonic()
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    check(f"infold fetch --source {source}: {time.monotonic() - start:.2f} s", ran.returncode == 0)
    return [int(json.loads(line)["task_id"]) for line in ran.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(prog="scripts/test-sources", description="Clients of GitHub and GitLab.")
    parser.add_argument("--infold", required=True)
    parser.add_argument("--testkit", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        for source, use in (("github", use_github), ("gitlab", use_gitlab)):
            with Server(arguments.testkit) as server:
                numbers = use(server)
                for again in ("", ", again, with a cache"):
                    found = fetch(arguments.infold, server, source, home)
                    check(f"infold fetch lists what the client lists: {len(found)}{again}", found == numbers)


main()
