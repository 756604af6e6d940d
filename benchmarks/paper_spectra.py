"""The exact spectra beside the "True" column of the paper's table of eigenvalues, which is successor(0.9).

    python benchmarks/paper_spectra.py [--layouts DIR]

Worlds that carry the paper's names ship with the package; the others need a folder with the authors' layouts.
"""

import argparse
import warnings

import numpy as np

import lapwing as lw

PAPER = {
    "GridRoom-1": ".0000 .0895 .0895 .1643 .2801 .2801 .3277 .3277 .4376 .4622 .4622",
    "GridRoomSym-4": ".0000 .0540 .0540 .1068 .4502 .4507 .4507 .4512 .4915 .4951 .4951",
    "GridMaze-7": ".0000 .1833 .4622 .5208 .7148 .7958 .8392 .8549 .8739 .8934 .9091",
    "GridMaze-9": ".0000 .1582 .3083 .4899 .6613 .7529 .7777 .8266 .8613 .8768 .8796",
    "GridMaze-17": ".0000 .0029 .0116 .0257 .0448 .0682 .0952 .1251 .1572 .1907 .2249",
    "GridRoom-16": ".0000 .0016 .0063 .0139 .0242 .0367 .0511 .0663 .0832 .1007 .1161",
    "GridRoom-32": ".0000 .0008 .0018 .0039 .0065 .0135 .0161 .0200 .0270 .0284 .0364",
    "GridRoom-64": ".0000 .0004 .0010 .0016 .0020 .0021 .0035 .0041 .0063 .0090 .0097",
    "GridMaze-32": ".0000 .0000 .0004 .0013 .0037 .0043 .0058 .0063 .0075 .0099 .0148",
    "GridMaze-26": ".0000 .0005 .0034 .0039 .0048 .0058 .0094 .0129 .0156 .0195 .0255",
    "GridMaze-19": ".0000 .0016 .0058 .0068 .0140 .0232 .0365 .0403 .0516 .0559 .0821",
    "GridRoom-4": ".0000 .0490 .0576 .1122 .3905 .4420 .4531 .4585 .4787 .4917 .5209",
}


def main(layouts: str | None) -> None:
    warnings.simplefilter("ignore", lw.LapwingWarning)  # one of the authors' mazes falls into two parts
    known = lw.world_names(layouts)
    print(f"{'world':<15}{'states':>7}{'largest difference':>20}   equal to 4 decimals")
    for name, text in PAPER.items():
        if name not in known:
            continue
        printed = np.array([float(number) for number in text.split()])
        model = lw.solve(name, dim=len(printed), layouts=layouts)
        ours = model.eigenvalues_in("successor(0.9)")
        states = lw.make_world(name, layouts=layouts).num_states
        equal = int((np.abs(ours.round(4) - printed) < 1e-9).sum())
        print(f"{name:<15}{states:>7}{np.abs(ours - printed).max():>20.6f}   {equal} of {len(printed)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layouts", metavar="DIR")
    main(parser.parse_args().layouts)
