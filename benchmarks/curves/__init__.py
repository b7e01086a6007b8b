"""Recorded learning curves: real networks and boosted trees, stored at every epoch, to tune and to judge methods on.

A table holds the whole learning curve of each of a few hundred configs: validation error, test error and seconds after every
epoch (or round of boosting). ``tables.load(name)`` reads one; ``spaces`` says what the names mean.

The data sets are split in two, and no data set is in both, whatever the learner. Choose defaults on TUNING only. Make claims on
REPORTING only.

| | TUNING | REPORTING |
| --- | --- | --- |
| multilayer perceptrons, 50 epochs | texture, splice, puma32h, bank32nh | satimage, phoneme, optdigits, kin8nm, parkinsons |
| the same with the number of training rows as a second fidelity | wind | pendigits |
| the convolutional network of Wu and Frazier, 50 epochs, training images as a second fidelity | | CIFAR-10 |
| XGBoost, 150 rounds | splice, puma32h | satimage, kin8nm |

    python -m benchmarks.curves.record_networks --help     # how the networks were recorded; needs torch, a GPU is best
    python -m benchmarks.curves.record_boosting            # XGBoost on one thread; goes on where it was interrupted
    python -m benchmarks.curves.emulator                   # how well the emulators predict configs that they have not seen
    python -m benchmarks.curves.compare                    # methods with and without fidelities, and other libraries
    python -m benchmarks.curves.traps                      # the same on planted curves that mislead
    python -m benchmarks.curves.figure                     # figure 2 of Wu and Frazier
"""
