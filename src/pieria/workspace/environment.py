"""What a command may see of our environment. Invariant: an allow list, so that no key passes, whatever its name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

MARK = "PIERIA_JOB"
"""Its value is SESSION.JOB: the mark by which a process that left its session is still known as ours."""

NAMES = frozenset(
    """
    HOME LANG LANGUAGE LOGNAME PATH SHELL TMPDIR TZ USER NO_COLOR CI
    VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYENV_ROOT PYENV_VERSION PYTHONPATH PYTHONDONTWRITEBYTECODE
    PYTHONUNBUFFERED PIP_INDEX_URL PIP_CACHE_DIR UV_CACHE_DIR UV_INDEX_URL
    GOPATH GOROOT GOBIN GOFLAGS GOCACHE GOMODCACHE GOPROXY GOPRIVATE GOTOOLCHAIN
    CARGO_HOME CARGO_TARGET_DIR RUSTUP_HOME RUSTUP_TOOLCHAIN RUSTFLAGS
    JAVA_HOME MAVEN_OPTS M2_HOME GRADLE_HOME GRADLE_USER_HOME ANDROID_HOME SDKMAN_DIR
    NODE_PATH NODE_ENV NVM_DIR NVM_BIN VOLTA_HOME PNPM_HOME BUN_INSTALL DENO_DIR NPM_CONFIG_PREFIX COREPACK_HOME
    GEM_HOME GEM_PATH RBENV_ROOT RBENV_VERSION BUNDLE_PATH COMPOSER_HOME ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR
    CC CXX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS MAKEFLAGS CPATH
    LIBRARY_PATH LD_LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH
    CUDA_HOME CUDA_VISIBLE_DEVICES OMP_NUM_THREADS NIX_PATH NIX_PROFILES NIX_SSL_CERT_FILE IN_NIX_SHELL
    HOMEBREW_PREFIX HOMEBREW_CELLAR HOMEBREW_REPOSITORY SDKROOT DEVELOPER_DIR WSL_DISTRO_NAME
    SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
    GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_CONFIG_NOSYSTEM
    """.split()  # noqa: SIM905  # words are read more easily than a list of strings
)
PREFIXES = ("LC_", "XDG_")

SET = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "DEBIAN_FRONTEND": "noninteractive",
}
"""Nobody is at a terminal: pagers pass text through, editors and prompts fail instead of waiting or saying yes."""


def allowed(base: Mapping[str, str], mark: str, *, also: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment of a command. `also` names more variables that the person lets through.

    A value with a user's name and password in a URL, as proxies and package indexes may have, is left out.
    """
    more = frozenset(also)
    found = {
        name: value
        for name, value in base.items()
        if name in more or ((name in NAMES or name.startswith(PREFIXES)) and not _has_login(value))
    }
    return {**found, **SET, MARK: mark}


def _has_login(value: str) -> bool:
    return "://" in value and "@" in value
