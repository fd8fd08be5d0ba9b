"""The progress of a run in a notebook; elsewhere the engine shows it on standard error."""
import sys

from .job import _engine


def is_notebook():
    """Whether this is a kernel of Jupyter, whose standard error is no terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class Progress:
    """A bar of tqdm while it is entered, or without tqdm one line that is written again; of the log warnings alone come
    between. Shows and changes nothing unless `is_shown`."""

    PERCENT = 100

    def __init__(self, is_shown):
        self._is_shown, self._bar, self._text = is_shown, None, ""

    def __enter__(self):
        if self._is_shown:
            _engine.set_log_level("warning")
            try:
                from tqdm.auto import tqdm
                self._bar = tqdm(total=self.PERCENT, unit="%", bar_format="{l_bar}{bar}| {elapsed}<{remaining}{postfix}")
            except ImportError:
                pass
        return self

    def __exit__(self, *error):
        if self._is_shown:
            _engine.set_log_level("info")
        if self._bar is not None:
            if error[0] is None:
                self._bar.update(self.PERCENT - self._bar.n)
            self._bar.close()
        elif self._text:
            print(file=sys.stderr)

    def show(self, phase, step, examples, share, loss, metric, value):
        """share: of the whole job, negative where it is unknown; metric: "" until there is one."""
        if not self._is_shown:
            return
        text = f"step {step}, {examples} examples" + (f", loss {loss:.4f}, {metric} {value:.4f}" if metric else "")
        percent = max(0, int(self.PERCENT * share))
        if self._bar is not None:
            self._bar.set_description(phase, refresh=False)
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update(percent - self._bar.n)
            self._bar.refresh()
        else:
            text = f"{percent:3d} %  {phase}  {text}"
            print("\r" + text.ljust(len(self._text)), end="", file=sys.stderr, flush=True)
            self._text = text
