"""Two hosts on this machine: network namespaces with names and addresses, and a link to cut."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

STRANGER = "02:00:00:00:00:99"
"""An address that no card on the link has: what is sent to it is lost, and nobody says so."""


class TwoHosts:
    """``host-a`` and ``host-b``, which reach each other, and nothing else, by one link."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("ip") is None or shutil.which("unshare") is None:
            pytest.skip("two hosts are made by 'ip' and 'unshare' (iproute2, util-linux)")
        self.spaces = [f"textmill-{os.getpid()}-{host}" for host in "ab"]
        self.names = folder / "hosts"
        self.names.write_text("127.0.0.1 localhost\n10.77.0.1 host-a\n10.77.0.2 host-b\n")

    def __enter__(self):
        one, other = self.spaces
        try:
            for space in self.spaces:
                ip("netns", "add", space)
            link = ["link", "add", "veth0", "netns", one, "type", "veth"]
            ip(*link, "peer", "name", "veth0", "netns", other)
            for number, space in enumerate(self.spaces, 1):
                ip("-n", space, "addr", "add", f"10.77.0.{number}/24", "dev", "veth0")
                for device in ("lo", "veth0"):
                    ip("-n", space, "link", "set", device, "up")
            subprocess.run(self.on(0, "true"), check=True, capture_output=True, text=True)
        except subprocess.CalledProcessError as error:
            self.__exit__()
            pytest.skip(f"two hosts cannot be made here: {error.stderr.strip()}")
        return self

    def __exit__(self, *_):
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)

    def on(self, number: int, *words: str) -> list[str]:
        """The words that run others on a host."""
        named = f"hostname host-{'ab'[number]} && mount --bind {self.names} /etc/hosts"
        inside = ["unshare", "--uts", "sh", "-c", f'{named} && exec "$@"', "sh"]
        return ["ip", "netns", "exec", self.spaces[number], *inside, *words]

    def cut(self, how: str) -> None:
        """Takes the link ``down`` on host-b, or loses all packets, ``silent``."""
        if how == "down":
            ip("-n", self.spaces[1], "link", "set", "veth0", "down")
            return
        for space, other in zip(self.spaces, ("10.77.0.2", "10.77.0.1"), strict=True):
            place = [other, "lladdr", STRANGER, "dev", "veth0", "nud", "permanent"]
            ip("-n", space, "neigh", "replace", *place)

    def mend(self, how: str) -> None:
        """Undoes it."""
        if how == "down":
            ip("-n", self.spaces[1], "link", "set", "veth0", "up")
            return
        for space, other in zip(self.spaces, ("10.77.0.2", "10.77.0.1"), strict=True):
            ip("-n", space, "neigh", "del", other, "dev", "veth0")


def ip(*words: str) -> None:
    """Runs ``ip``."""
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
